"""YAML as it is read here: aliases may not make much of little."""

from __future__ import annotations

from typing import Any

import yaml  # type: ignore[import-untyped]

MOST = 100_000  # nodes with all aliases written out; the largest grid of the book has some hundreds


def read_yaml(text: str, loader: Any) -> Any:
    """The content of a text of one document; :class:`yaml.YAMLError` for what can't be read, or repeats too much.

    A kilobyte of aliases of aliases stands for 10^9 values. They take memory once they are copied or printed.

    >>> read_yaml("{a: &x [1, 2], b: *x}", yaml.SafeLoader)
    {'a': [1, 2], 'b': [1, 2]}
    """
    parser = loader(text)
    try:
        node = parser.get_single_node()
        if node is not None and _size(node, {}) > MOST:
            raise yaml.YAMLError(f"its aliases (*name) must stand for {MOST} values at most. Write them out")
        return None if node is None else parser.construct_document(node)
    except RecursionError:
        raise yaml.YAMLError("it must not be nested so deeply") from None
    finally:
        parser.dispose()


def _size(node: Any, known: dict[int, float]) -> float:
    """How many nodes it stands for; infinitely many where it holds itself."""
    if id(node) not in known:
        known[id(node)] = float("inf")
        inside = node.value if isinstance(node.value, list) else []
        parts = [part for entry in inside for part in (entry if isinstance(entry, tuple) else (entry,))]
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]
