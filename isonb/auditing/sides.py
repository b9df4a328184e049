"""The two sides of a model of sentence-transformers: how its queries and its documents become vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from isonb.auditing.defects import Finding
from isonb.errors import InputError, fail
from isonb.runtime.told import clipped

Side = Literal["query", "document"]
SIDES: tuple[Side, Side] = ("query", "document")
NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}  # of prompts, as encode_... looks for them


class Way(NamedTuple):
    """How a side is encoded: the prompt by name ("" for none) and as text, and the route of a Router ("" for none)."""

    prompt: str
    text: str
    route: str

    def __str__(self) -> str:
        """In words.

        >>> print(Way("query", "query: ", "")), print(Way("", "", "query"))
        with the prompt query ("query:")
        by the route query, without a prompt
        (None, None)
        """
        route = f"by the route {self.route}, " if self.route else ""
        named = f"with the prompt {self.prompt} ({clipped(self.text)})" if self.text else "without a prompt"
        return route + named


def ways(model: Any, prompt: str | None = None) -> dict[Side, Way]:
    """The ways of the two sides; ``prompt``: one of the model's, by name, for both, or "" for none of them."""
    prompts = dict(getattr(model, "prompts", None) or {})
    if prompt and prompt not in prompts:
        some = ", ".join(name for name, text in prompts.items() if text) or "none"
        fail(InputError, "prompt must be one of the model's", repr(prompt), f'Its prompts: {some}. "" takes none.')
    own = any(prompts.get(name) for names in NAMES.values() for name in names)  # the library adds empty ones
    by_side = {}
    for side in SIDES:
        usual = next((name for name in NAMES[side] if own and name in prompts), model.default_prompt_name or "")
        name = usual if prompt is None else prompt
        by_side[side] = Way(name, str(prompts.get(name, "")), _route(model, side))
    return by_side


def two_sided(model: Any) -> bool:
    """Whether the model encodes queries in another way than documents."""
    query, document = (way[1:] for way in ways(model).values())
    return query != document


def sides_finding(model: Any, prompt: str | None, queries: bool) -> Iterator[Finding]:
    """How the sides were encoded, for a model that has two, a default prompt, or prompts that were chosen."""
    way = ways(model, prompt)
    if not two_sided(model) and prompt is None:
        if way["document"].text:
            text = f"All texts were encoded {way['document']}, which is the model's default."
            yield Finding("default prompt", "note", text, 'Another is chosen by prompt, or --prompt; "" takes none.')
        return
    of_queries = f"; queries {way['query']}" if queries or prompt is None else ""
    text = f"Texts were encoded as documents, {way['document']}{of_queries}."
    advice = (
        "" if queries else "Give queries, too: a search compares the two sides, and its threshold lies between them."
    )
    yield Finding("two sides", "note", text, advice)


def _route(model: Any, side: Side) -> str:
    """The route that texts of a side take through the model's Router; "" where it has none."""
    router = next((module for module in model.children() if hasattr(module, "route_mappings")), None)
    if router is None:
        return ""
    keys = ((side, "text"), (side, None), (None, "text"), (None, None))
    mapped = next((router.route_mappings[key] for key in keys if key in (router.route_mappings or {})), None)
    named = next((name for name in (side, "text") if name in router.sub_modules), router.default_route)
    return str(mapped or named or "")
