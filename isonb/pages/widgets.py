"""The control of a chapter when there is a kernel: an ipywidget around the function that draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isonb.pages.errors import PageError
from isonb.pages.vega import in_book, png_fallback

__all__ = ["live"]


def live(draw: Callable[..., object], **controls: object) -> Any:
    """Redraw with ``draw(**values)`` whenever a control moves; ``controls`` as for ``ipywidgets.interact``.

    ``draw`` shows the picture (``pages.show``) or returns it.

    With a kernel it returns the interactive widget. While the book is built there is none to answer, so ``draw`` runs
    once with the default values (the code stays tested), and nothing of it enters the page: the page shows the Altair
    slider beside it. Raises :class:`PageError` when there is no control or ``draw`` shows nothing.
    """
    if not controls:
        raise PageError("live needs at least one control; got none. Example: live(draw, n=(10, 500, 10)).")
    import ipywidgets
    from IPython.display import display
    from IPython.utils.capture import capture_output

    def redraw(**values: object) -> object:
        before = png_fallback(False)
        try:
            result = draw(**values)
            if result is not None:
                display(result)  # type: ignore[no-untyped-call]
        finally:
            png_fallback(before)
        return result

    if not in_book():
        return ipywidgets.interactive(redraw, **controls)
    values = _defaults(controls)
    with capture_output() as shown:
        result = redraw(**values)
    if result is None and not shown.outputs and not shown.stdout:
        raise PageError(f"the function given to live must show or return something; {values} gave nothing.")
    return None


def _defaults(controls: dict[str, object]) -> dict[str, object]:
    """The value each control starts with, read from the widgets that ``interact`` would make."""
    import ipywidgets

    values = {}
    for name, control in controls.items():
        widget = ipywidgets.interactive.widget_from_abbrev(control)
        if widget is None:
            raise PageError(f"control {name} must be a widget or what interact takes; got {control!r}.")
        values[name] = widget.get_interact_value() if hasattr(widget, "get_interact_value") else widget.value
        if isinstance(widget, ipywidgets.Widget):
            widget.close()
    return values
