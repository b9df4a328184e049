"""The treatment that a claim of a paper speaks of: method, tasks and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def canonical(value: Any) -> str:
    """One text for all ways of writing a value: 1, 1.0 and "1".

    >>> canonical(1), canonical("1.0"), canonical(True), canonical(None), canonical("all")
    ('1.0', '1.0', 'True', 'None', 'all')
    """
    try:
        return str(value) if isinstance(value, bool) else repr(float(value))
    except (TypeError, ValueError):
        return str(value)


@dataclass(frozen=True)
class Treatment:
    """What was done to the runs that a claim speaks of, as its paper states it.

    Args:
        method: its name; "none" for plain training.
        tasks: on which the paper has it.
        settings: by column the values that the paper has: ``{"method.weight": (-5, -3, -1), "head": ("linear",)}``.
            What the paper leaves open isn't among them.
        by_model: more values by encoder and column, where a value means another thing in each: its last layer, say.
        by_cell: the values by encoder and task, in place of ``settings``, where the paper chose some for each.
    """

    method: str
    tasks: tuple[str, ...]
    settings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)
    by_model: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict, hash=False)
    by_cell: Mapping[tuple[str, str], Mapping[str, tuple[Any, ...]]] = field(default_factory=dict, hash=False)

    def differences(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a run that aren't the paper's, by column; the task aside.

        >>> istar = Treatment("istar", ("sst2",), {"method.weight": (-5, -3, -1)})
        >>> istar.differences({"task": "sst5", "method.name": "istar", "method.weight": -0.1})
        {'method.weight': -0.1}
        """
        model, task = str(settings.get("model")), str(settings.get("task"))
        more = self.by_model.get(model, {})
        allowed = {
            column: {canonical(value) for value in (*values, *more.get(column, ()))}
            for column, values in {**self.settings, **self.by_cell.get((model, task), {})}.items()
        }
        return {
            column: settings.get(column) for column in allowed if canonical(settings.get(column)) not in allowed[column]
        }

    def has(self, settings: Mapping[str, Any]) -> bool:
        """Whether a run is of this treatment: method, task and all settings."""
        named = settings.get("method.name", "none") == self.method and settings.get("task") in self.tasks
        return named and not self.differences(settings)

    @property
    def varied(self) -> tuple[str, ...]:
        """The settings of the method of which the paper has several values: they tell one cell from another."""
        by_model = {column for more in self.by_model.values() for column in more}
        several = {column for column, values in self.settings.items() if len(values) > 1} | by_model
        return tuple(column for column in self.settings if column.startswith("method.") and column in several)
