"""A box in the page that takes vectors and says what an audit says first; nothing leaves the page."""

from isonb_lab.figures.browser import scripts

SCRIPTS = ("ml_matrix.js", "cloud.js", "draw.js", "audit.js", "vectors.js", "try_yours.js")


class TryYours:
    """The box, for a notebook or a page."""

    def _repr_html_(self) -> str:
        return (
            '<div class="isonb-try" role="group" aria-label="Try your own vectors">'
            "<label>A file, .npy or .csv, chosen or dropped here "
            '<input type="file" name="file" accept=".npy,.csv,.txt"></label>'
            "<label>or twenty vectors and more, a line each "
            '<textarea name="pasted" rows="4" spellcheck="false"></textarea></label>'
            '<p><button name="read" type="button">Read what is pasted</button></p>'
            '<p class="isonb-told" aria-live="polite">Nothing leaves this machine.</p><table><tbody></tbody></table>'
            f"{scripts(*SCRIPTS)}</div>"
        )

    def __repr__(self) -> str:
        return "A box that takes a file of vectors: it works in the pages and in a notebook"
