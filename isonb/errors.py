"""The errors of isonb, without torch: what may not come in, and libraries that are missing."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import shlex
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

CODE = "\n    "  # what stands before each line of code at the end of an error
SCREEN = 1000  # characters of a message in a terminal
LAB = ("lab", "cluster", "book", "dev")  # isonb-lab, and its extras


class InputError(ValueError):
    """Input outside a function's domain. The message gives the invariant, the value received and the fix.

    >>> import isonb, torch
    >>> isonb.rbf_uniformity(torch.eye(3), t=0.0)
    Traceback (most recent call last):
    ...
    isonb.errors.InputError: rbf_uniformity: t must be positive and finite; got 0.0. 0.5 is the default.
    """

    named = False  # set by validated once the function's name stands in front


class ShapeError(InputError):
    """Wrong rank, too few points or dimensions, a mask or partner of another shape, k larger than the cloud allows.

    >>> import isonb, torch
    >>> isonb.isoscore(torch.ones(1, 3))
    Traceback (most recent call last):
    ...
    isonb.errors.ShapeError: isoscore: x must hold at least 2 points; got 1 (shape (1, 3)). Pass ...
    """


class DtypeError(InputError, TypeError):
    """Not a tensor, or a tensor of a dtype the function can't compute in.

    >>> import isonb, torch
    >>> isonb.isoscore(torch.tensor([[1, 2], [3, 4]]))
    Traceback (most recent call last):
    ...
    isonb.errors.DtypeError: isoscore: x must be a floating-point tensor; got torch.int64. Call x.float() or x.double().
    """


class DegenerateError(InputError):
    """The right shape, but a value for which the quantity isn't defined: NaN, Inf, zero variance, all points equal.

    >>> import isonb, torch
    >>> isonb.isoscore(torch.tensor([[0.0, 1.0], [float("nan"), 1.0]]))
    Traceback (most recent call last):
    ...
    isonb.errors.DegenerateError: isoscore: x must be finite; got nan at index (1, 0). Drop or mask the bad rows ...
    """


class NotFittedError(InputError):
    """A transform or a layer is used before it has seen the points it learns from.

    >>> import isonb, torch
    >>> isonb.ZeroMean().transform(torch.eye(3))
    Traceback (most recent call last):
    ...
    isonb.errors.NotFittedError: ...
    """


class OptionError(InputError):
    """An option that doesn't exist, of another type or out of its range; nothing has been started.

    >>> import isonb
    >>> isonb.IStarLoss(zeta=2.0)
    Traceback (most recent call last):
    ...
    isonb.errors.OptionError: zeta of IStarLoss must be float from 0 to 1 or 'auto'; got 2.0. It means: ...
    """


class DependencyError(ImportError):
    """An optional library is needed and not installed. The message names the extra that brings it.

    >>> print(missing("rips_barcode", "gudhi", "topology"))
    rips_barcode needs gudhi: pip install ...[topology]...
    """


class IsotropyWarning(UserWarning):
    """Vectors in training passed a gate of :class:`isonb.integrations.monitor.IsotropyMonitor`.

    >>> import torch, warnings
    >>> from isonb.integrations.monitor import COLLAPSE, IsotropyMonitor
    >>> monitor = IsotropyMonitor(["relative_spread"], warn=COLLAPSE)
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     _ = [monitor.observe(torch.ones(8, 4), step=step) for step in (1, 2)]
    >>> [warning.category.__name__ for warning in seen]
    ['IsotropyWarning']
    """


class CloudWarning(UserWarning):
    """Points that look like something else: distances between points, or a cloud whose columns are its points.

    >>> import isonb, torch, warnings
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     _ = isonb.h0_barcode(torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]))
    >>> print(seen[0].message)
    x is symmetric with a zero diagonal, as distances are, but is taken as points. Pass metric="precomputed".
    """


class PrecisionWarning(UserWarning):
    """A model is trained whose weights are in half precision, without a float32 copy; the message says what to do.

    >>> import torch, warnings
    >>> from isonb.integrations.union import warn_of_half_weights
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     warn_of_half_weights(torch.nn.Linear(2, 2).half())
    >>> print(str(seen[0].message).split(":")[0])
    weights in torch.float16 are trained without a float32 copy
    """


class FitWarning(UserWarning):
    """A fit has fewer directions than it asks for, too few points or too few passes; the message says how much.

    >>> import isonb, torch, warnings
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     _ = isonb.Whitening(2).fit(torch.eye(4))
    >>> print(seen[0].message)
    Whitening: 4 points are few for 4 dimensions: a fitted variance is between 0 and 4 times the true one, ...
    """


def on_a_screen(text: str, rest: str = "the rest is left out") -> str:
    """A message with its middle cut out where it is longer than a screen; its end says what to do.

    >>> len(on_a_screen("a label " * 13_000)) < 1_200
    True
    """
    if len(text) <= SCREEN:
        return text
    return f"{text[: SCREEN // 2]} [... {len(text) - SCREEN:,} characters; {rest}] {text[-(SCREEN - SCREEN // 2) :]}"


def in_one_line(error: BaseException) -> str:
    """The message of a library's error as a part of ours: on one line, cut to a screen; its type where it says nothing.

    >>> in_one_line(OSError("no such file\\n  or folder")), in_one_line(KeyError())
    ('no such file or folder', 'KeyError')
    """
    return on_a_screen(" ".join(str(error).split())) or type(error).__name__


def with_name(error: InputError, name: str) -> InputError:
    """The error with a function's name in front of its message."""
    renamed = type(error)(f"{name}: {error}")
    renamed.named = True
    return renamed


def missing(by: str, library: str, extra: str) -> DependencyError:
    """The error that says which library ``by`` needs, and the extra of isonb that brings it."""
    return DependencyError(f"{by} needs {library}: {install_line(extra)}")


def install_line(extra: str) -> str:
    """How to install this copy of isonb again, with an extra, for a shell: from where it came, and from nowhere else.

    The name alone would ask the index of packages, where anybody can register it. The extras in :data:`LAB` are those
    of isonb-lab, which needs isonb beside it.

    >>> install_line("audit")
    "pip install ...[audit]..."
    """
    kind, place = origin()
    if not kind:
        return f"install isonb again from where it came, with {'isonb-' if extra == 'lab' else 'its extra '}{extra}"
    editable = "-e " if kind == "checkout" else ""
    quoted = " ".join(editable + shlex.quote(requirement) for requirement in requirements(kind, place, extra))
    return f"pip install {quoted}"


def requirements(kind: str, place: str, extra: str) -> list[str]:
    """What pip is to install: see :func:`origin`.

    >>> requirements("path", "/home/me/isonb", "audit"), requirements("index", "0.1.0", "lab")
    (['/home/me/isonb[audit]'], ['isonb==0.1.0', 'isonb-lab==0.1.0'])
    >>> requirements("url", "git+https://example.org/isonb", "book")
    ['isonb @ git+https://example.org/isonb', 'isonb-lab[book] @ git+https://example.org/isonb#subdirectory=book']
    """
    if extra not in LAB:
        return [_requirement(kind, "isonb", place, f"[{extra}]")]
    expected = "" if extra == "lab" else f"[{extra}]"
    lab = place if kind == "index" else _lab_place(place)
    return [_requirement(kind, "isonb", place, ""), _requirement(kind, "isonb-lab", lab, expected)]


def _requirement(kind: str, name: str, place: str, extra: str) -> str:
    if kind == "index":
        return f"{name}{extra}=={place}"
    return f"{name}{extra} @ {place}" if kind == "url" else f"{place}{extra}"


def _lab_place(place: str) -> str:
    """Where isonb-lab lies beside isonb: its wheel beside the wheel, else the folder ``book`` of the same source."""
    if place.endswith(".whl"):
        folder, _, file = place.rpartition("/")
        return f"{folder}/{file.replace('isonb-', 'isonb_lab-', 1)}"
    if "://" not in place:
        return f"{place}/book"
    url, mark, folder = place.partition("#subdirectory=")
    return f"{url}#subdirectory={folder}/book" if mark else f"{url}#subdirectory=book"


@functools.cache
def origin() -> tuple[str, str]:
    """Where this copy of isonb came from, as pip says it, or the checkout that it is in.

    ("checkout", folder), ("path", folder), ("url", URL of a repository or an archive), ("index", version), or
    ("", "") where that isn't known.
    """
    package = Path(__file__).resolve().parent
    project = package.parent / "pyproject.toml"
    if project.is_file() and 'name = "isonb"' in project.read_text(encoding="utf-8"):
        return "checkout", str(package.parent)
    try:
        result = metadata.distribution("isonb")
        direct = json.loads(result.read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return "", ""
    if Path(str(result.locate_file("isonb"))).resolve() != package:  # the metadata are those of another copy
        return "", ""
    return _source(direct) if direct else ("index", result.version)


def _source(direct: dict[str, Any]) -> tuple[str, str]:
    """What ``direct_url.json`` says (PEP 610): a folder, a commit of a repository, an archive."""
    url, repository = str(direct.get("url", "")), direct.get("vcs_info") or {}
    if "dir_info" in direct:
        return "path", unquote(urlsplit(url).path)
    part = f"#subdirectory={direct['subdirectory']}" if direct.get("subdirectory") else ""
    return "url", f"{repository['vcs']}+{url}@{repository['commit_id']}{part}" if repository else url + part


@contextlib.contextmanager
def needs(by: str, extra: str, *modules: str) -> Iterator[None]:
    """Imports in this block that fail, and ``modules`` that aren't there, are a :class:`DependencyError`.

    ``modules`` are looked for, not imported.

    >>> with needs("this example", "audit"):
    ...     import no_such_library
    Traceback (most recent call last):
    ...
    isonb.errors.DependencyError: this example needs no_such_library: pip install ...
    """
    for name in modules:
        if importlib.util.find_spec(name) is None:
            raise missing(by, name, extra)
    try:
        yield
    except ImportError as error:
        library = (error.name or "").split(".")[0]
        if library in ("", "isonb"):  # told already, or a mistake of ours
            raise
        other = "" if isinstance(error, ModuleNotFoundError) else f" in another version ({error})"
        raise missing(by, library + other, extra) from error


def fail(kind: type[InputError], invariant: str, got: object, fix: str) -> NoReturn:
    """Raise ``kind`` with the three things a caller needs: what must hold, what came, what to do."""
    raise kind(f"{invariant}; got {got}. {fix}")


def not_fitted(name: str, fix: str = "Call fit first.") -> NoReturn:
    """Raise :class:`NotFittedError` in the form of :func:`fail`."""
    fail(NotFittedError, f"{name} must be fitted before it is used", "no statistics yet", fix)
