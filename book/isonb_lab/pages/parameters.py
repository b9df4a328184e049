"""The parameters of a chapter: a small grammar for one cell, and the check of values before a kernel starts.

A line reads ``name: type = literal  # help; range LO..HI`` or ``... # help; one of A|B|C``; the part after the
semicolon may be left out. Types are int, float, str and bool. papermill itself takes any name and any type.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from IPython.core.interactiveshell import InteractiveShell

from isonb.options import UNFIT, Domain
from isonb_lab.pages.errors import ParameterError

Value = int | float | str | bool
TYPES: dict[str, type[Value]] = {"int": int, "float": float, "str": str, "bool": bool}
LINE = re.compile(r"(?P<name>[A-Za-z_]\w*): (?P<kind>\w+) = (?P<literal>.+?)  # (?P<comment>.+)")
LIMITS = re.compile(r"(?:range (?P<low>\S+?)\.\.(?P<high>\S+)|one of (?P<options>.+))")
INJECTED = "# Parameters\n"  # how the cell begins that papermill puts below
_changed: dict[str, Value] = {}  # what this kernel's notebook was given otherwise than declared
GRAMMAR = "name: int|float|str|bool = literal  # help[; range LO..HI | ; one of A|B|C]"


@dataclass(frozen=True)
class Parameter:
    """One line of the parameters cell: a typed default, what it means, and which values it takes."""

    name: str
    kind: str
    default: Value
    help: str
    low: float | None = None
    high: float | None = None
    options: tuple[Value, ...] = ()

    @property
    def domain(self) -> Domain:
        """The values it takes.

        >>> str(Parameter("n", "int", 5, "points", low=2, high=9).domain)
        'int from 2 to 9'
        """
        return Domain(() if self.options else (TYPES[self.kind],), self.options, self.low, self.high)

    def check(self, value: object) -> Value:
        """``value`` in the parameter's type, or :class:`ParameterError`; text is read as a command line gives it.

        >>> Parameter("rate", "float", 0.5, "learning rate").check("1e-3")
        0.001
        >>> Parameter("n", "int", 5, "points", low=2, high=9).check(12)
        Traceback (most recent call last):
        ...
        isonb_lab.pages.errors.ParameterError: parameter n must be int from 2 to 9; got 12. It means: points.
        """
        if self.kind == "bool" and isinstance(value, str):
            value = {"true": True, "false": False}.get(value.strip().lower(), value)
        taken: Value = self.domain.fit(value, text=True)
        if taken is UNFIT:
            got = f"got {value!r}.{_suggest(str(value), map(str, self.options))} It means: {self.help}."
            raise ParameterError(f"parameter {self.name} must be {self.domain}; {got}")
        return taken


def _suggest(text: str, names: Iterable[str]) -> str:
    """A question, where something known is nearly what was said."""
    close = get_close_matches(text, list(names), n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _literal(text: str, line: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise ParameterError(f"a parameter's default must be a literal; got {text!r} in {line!r}.") from None


def _limits(limits: str, kind: str, line: str) -> dict[str, object]:
    match = LIMITS.fullmatch(limits)
    if not match:
        raise ParameterError(f"after ';' stands 'range LO..HI' or 'one of A|B|C'; got {limits!r} in {line!r}.")
    if match["options"] is not None:
        texts = [option.strip() for option in match["options"].split("|")]
        return {"options": tuple(texts if kind == "str" else (_literal(text, line) for text in texts))}
    low, high = _literal(match["low"], line), _literal(match["high"], line)
    numbers = isinstance(low, int | float) and isinstance(high, int | float) and kind in ("int", "float")
    if not numbers or not low <= high:  # type: ignore[operator]
        raise ParameterError(f"a range needs an int or float parameter and LO <= HI; got {limits!r} in {line!r}.")
    return {"low": low, "high": high}


def _parse_line(line: str) -> Parameter:
    match = LINE.fullmatch(line)
    if not match or match["kind"] not in TYPES:
        raise ParameterError(f"a parameter line must read '{GRAMMAR}'; got {line!r}.")
    text, separator, limits_text = match["comment"].rpartition("; ")
    if not separator or not limits_text.startswith(("range ", "one of ")):
        text, limits_text = match["comment"], ""
    limits = _limits(limits_text, match["kind"], line) if limits_text else {}
    default = _literal(match["literal"], line)
    parameter = Parameter(match["name"], match["kind"], default, text.strip(), **limits)  # type: ignore[arg-type]
    return Parameter(**{**vars(parameter), "default": parameter.check(default)})


def parse_parameters(source: str) -> tuple[Parameter, ...]:
    """The parameters of a cell. Blank lines and whole-line comments are skipped; all else must fit the grammar.

    >>> parse_parameters("n: int = 300  # points in the cloud; range 10..5000")[0].domain.high
    5000
    """
    lines = [line.rstrip() for line in source.splitlines()]
    parameters = tuple(_parse_line(line) for line in lines if line and not line.startswith("#"))
    names = [parameter.name for parameter in parameters]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ParameterError(f"each parameter stands once; {twice} stands {names.count(twice)} times.")
    return parameters


def validate_parameters(parameters: Sequence[Parameter], values: Mapping[str, object]) -> dict[str, Value]:
    """The given values, checked and in their type.

    >>> n = parse_parameters("n: int = 300  # points; range 10..5000")
    >>> validate_parameters(n, {"n": "20"})
    {'n': 20}
    >>> validate_parameters(n, {"m": 1})
    Traceback (most recent call last):
    ...
    isonb_lab.pages.errors.ParameterError: no parameter is called m. This chapter has: n (int from 10 to 5000).
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    checked: dict[str, Value] = {}
    for name, value in values.items():
        if name not in by_name:
            valid = ", ".join(f"{p.name} ({p.domain})" for p in parameters) or "none"
            raise ParameterError(f"no parameter is called {name}. This chapter has: {valid}.{_suggest(name, by_name)}")
        checked[name] = by_name[name].check(value)
    return checked


def check_parameters() -> None:
    """The line below a parameters cell: check the values that this notebook has now, whoever has set them.

    What they must be is said in the cell itself, read from the cells that have run. Values are set by an edit of that
    cell, by a cell of one's own, or by papermill, whose names are checked, too. Outside a notebook it does nothing.
    Raises :class:`ParameterError`.
    """
    if not InteractiveShell.initialized():
        return
    names = InteractiveShell.instance().user_ns
    ran = [str(source) for source in names["In"]]
    declared = [source for source in ran if _declares(source)]
    if not declared:
        raise ParameterError("the cell that declares the parameters must have run; none has. Run it, as it was.")
    parameters = parse_parameters(declared[-1])
    injected = [source for source in ran[len(ran) - ran[::-1].index(declared[-1]) :] if source.startswith(INJECTED)]
    lines = [line for source in injected for line in ast.parse(source).body if isinstance(line, ast.Assign)]
    injected_names = {ast.unparse(line.targets[0]) for line in lines}
    values = {name: names[name] for name in sorted(injected_names) + [p.name for p in parameters] if name in names}
    checked = validate_parameters(parameters, values)
    names.update(checked)
    _changed.clear()
    _changed.update({p.name: checked[p.name] for p in parameters if checked.get(p.name, p.default) != p.default})


def changed_parameters() -> dict[str, Value]:
    """The parameters that the last :func:`check_parameters` found to be others than their cell declares."""
    return dict(_changed)


def _declares(source: str) -> bool:
    """Whether a cell is a parameters cell: every line that isn't a comment has the form of one."""
    lines = [line.rstrip() for line in source.splitlines() if line.strip() and not line.startswith("#")]
    matches = [LINE.fullmatch(line) for line in lines]
    return bool(lines) and all(match and match["kind"] in TYPES for match in matches)
