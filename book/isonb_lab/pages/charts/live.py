"""The control of a chapter when there is a kernel: widgets in a box, and below it the picture that they draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from isonb_lab.pages.errors import PageError
from isonb_lab.pages.vega import in_book, png_fallback


def live(draw: Callable[..., object], **controls: object) -> None:
    """Redraw with ``draw(**values)`` whenever a control moves; ``controls`` as for ``ipywidgets.interact``.

    ``draw`` shows one picture (``pages.show``) or returns it.

    With a kernel it shows the controls and the picture, which is replaced in its place; so is what goes wrong later.
    While the book is built there is none to answer, so ``draw`` runs once with the default values (the code stays
    tested), and nothing of it enters the page: the page shows the Altair slider beside it. Raises :class:`PageError`
    when there is no control or ``draw`` doesn't show one picture.
    """
    if not controls:
        raise PageError("live needs at least one control; got none. Example: live(draw, n=(10, 500, 10)).")
    import ipywidgets
    from IPython.display import display

    widgets = {name: _widget(name, control) for name, control in controls.items()}
    data, metadata = _draw_once(draw, widgets)
    shown = [widget for widget in widgets.values() if isinstance(widget, ipywidgets.Widget)]
    if in_book():
        for widget in shown:
            widget.close()
        return
    # Not ipywidgets.interactive: its Output widget makes nbclient, so papermill, wait for ever now and then.
    display(ipywidgets.VBox(shown))  # type: ignore[no-untyped-call]
    place = display(data, metadata=metadata, raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def redraw(_: object) -> None:
        try:
            data, metadata = _draw_once(draw, widgets)
        except Exception as error:
            data, metadata = _error_output(error), {}
        place.update(data, metadata=metadata, raw=True)

    for widget in shown:
        widget.observe(redraw, "value")


def _widget(name: str, control: object) -> Any:
    """The widget that ``interact`` makes of an abbreviation, labelled."""
    import ipywidgets

    widget = ipywidgets.interactive.widget_from_abbrev(control)
    if widget is None:
        raise PageError(f"control {name} must be a widget or what interact takes; got {control!r}.")
    if isinstance(widget, ipywidgets.Widget) and not widget.description:
        widget.description = name
    return widget


def _draw_once(draw: Callable[..., object], widgets: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Data and metadata of the one picture that ``draw`` shows for what the widgets say now."""
    from IPython.display import display
    from IPython.utils.capture import capture_output

    values = {name: _value(widget) for name, widget in widgets.items()}
    before = png_fallback(False)
    try:
        with capture_output(stderr=False) as shown:
            result = draw(**values)
            if result is not None:
                display(result)  # type: ignore[no-untyped-call]
    finally:
        png_fallback(before)
    outputs = [(output.data, output.metadata or {}) for output in shown.outputs]
    outputs += [({"text/plain": shown.stdout}, {})] if shown.stdout else []
    if len(outputs) != 1:
        text = f"{values} gave {len(outputs)} (printed text is one more)"
        raise PageError(f"the function given to live must show or return one picture; {text}.")
    return outputs[0]


def _value(widget: Any) -> object:
    return widget.get_interact_value() if hasattr(widget, "get_interact_value") else widget.value


def _error_output(error: Exception) -> dict[str, Any]:
    """The error as a cell shows it, from where ``draw`` begins."""
    from IPython import get_ipython

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return {"text/plain": get_ipython().InteractiveTB.text(type(error), error, trace)}
