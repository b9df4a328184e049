"""An audit as an object: its numbers by name, as text, as a table, as JSON, as a chart and as one page of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from isonb.auditing.parts import SEVERITIES, AuditResult, Check, Finding, Layer, Match, Reading, Remedy, as_json
from isonb.auditing.sections import SHOWN, audit_sections, audit_title
from isonb.auditing.told import as_page, as_text
from isonb.errors import needs

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SEVERITIES", "Audit", "Check", "Finding", "Layer", "Match", "Reading", "Remedy", "quantile_chart"]


class Audit(AuditResult):
    """What :func:`isonb.audit` says.

    ``n`` and ``d``: rows that count, and dimensions. ``findings``: the worst first. ``readings``: measures of the
    shape, of ``measured`` rows. ``floor``: quantiles of the cosine of two random rows, as they are and after the mean
    is subtracted. ``withheld``: why the shape isn't judged, or nothing. ``remedies``: what would help. ``matches``:
    thresholds. ``next_steps``: three lines to paste. Of a model there are ``source`` (model and pooling), ``checks``
    and ``layers`` too.

    >>> import isonb, torch
    >>> audit = isonb.audit(torch.randn(500, 64, generator=torch.Generator().manual_seed(0)) + 1.0)
    >>> audit.n, audit.d, audit.ok, [finding.name for finding in audit.findings]
    (500, 64, False, ['shift', 'hubs'])
    """

    @property
    def ok(self) -> bool:
        """Whether there is neither a fault nor a warning."""
        return all(finding.severity == "note" for finding in self.findings)

    @property
    def sound(self) -> bool:
        """Whether no check of the model failed; True for vectors, of which nothing is known."""
        return all(check.state != "fault" for check in self.checks)

    def values(self) -> dict[str, float]:
        """Every number that a rule may name, by its name.

        Readings by title and by name in the registry ("IsoScore-U", "isoscore_unbiased"), by layer too ("layer 3
        IsoScore"); quantiles of the floor ("random cosine 0.99") and thresholds ("threshold as they are"; with pairs
        and queries both, that of the queries).
        """
        places = [("", self.readings), *((f"layer {layer.number} ", layer.readings) for layer in self.layers)]
        both = [(place, one) for place, readings in places for one in readings]
        numbers = {f"{place}{key}": one.value for place, one in both for key in (one.name, one.measure)}
        for cloud, quantiles in self.floor.items():
            numbers |= {f"{cloud} {share}": value for share, value in quantiles.items()}
        return numbers | {f"threshold {match.cloud}": match.threshold for match in self.matches}

    def threshold(self, rate: float = 0.01) -> float:
        """The cosine that a share ``rate`` of random pairs passes, of 0.5, 0.1, 0.05, 0.01 and 0.001."""
        return self.floor["random cosine"][f"{1 - rate:g}"]

    def percentile(self, cosine: float) -> float:
        """The percentage of random pairs below a cosine, from 0 to 100: a score that means the same in any cloud."""
        below = sum(end <= cosine for end in self.scale)
        if below in (0, len(self.scale)):
            return 100.0 if below else 0.0
        low, high = self.scale[below - 1], self.scale[below]
        return 100 * (below - 1 + (cosine - low) / (high - low)) / (len(self.scale) - 1)

    def to_frame(self) -> pd.DataFrame:
        """The readings as a table; of a model those of every layer, with a column ``layer``."""
        import pandas as pd

        if not self.layers:
            return pd.DataFrame([asdict(reading) for reading in self.readings])
        rows = [{"layer": layer.number, **asdict(one)} for layer in self.layers for one in layer.readings]
        return pd.DataFrame(rows)

    def to_json(self) -> str:
        """Everything, as JSON; a number that is not finite is null."""
        return as_json(self)

    def __repr__(self) -> str:
        return as_text(audit_title(self), audit_sections(self, full=False))

    def html(self) -> str:
        """The report as one HTML page, without scripts and with nothing to load."""
        name = "Audit of a model" if self.checks else "Audit of vectors"
        return as_page(name, audit_title(self), audit_sections(self, full=True))

    def plot(self) -> Any:
        """An altair chart; for a model: its shape by layer; for vectors: how alike random rows are."""
        return _by_layer(self.layers) if self.layers else quantile_chart(self.scale, "cosine of two random rows")


def _by_layer(layers: Sequence[Layer]) -> Any:
    with needs("Audit.plot", "lab"):
        import altair as alt
        import pandas as pd
    rows = [
        asdict(reading) | {"layer": layer.number, "measure": reading.name}
        for layer in layers
        for reading in layer.readings
        if reading.measure in SHOWN
    ]
    across = alt.X("layer:O", axis=alt.Axis(labelAngle=0))
    base = alt.Chart(width=230, height=150)
    value = alt.Y("value:Q", title=None, scale=alt.Scale(zero=True))
    dots = base.mark_line(point=True).encode(across, value)
    spans = base.mark_rule(strokeWidth=3, opacity=0.5).encode(across, alt.Y("low:Q", title=None), alt.Y2("high:Q"))
    usual = base.mark_line(strokeDash=[5, 3], color="#7f7f7f").encode(across, alt.Y("gaussian:Q", title=None))
    panels = alt.layer(usual, spans, dots, data=pd.DataFrame(rows).round(4))
    facet = alt.Facet("measure:N", title=None, sort=list(SHOWN.values()))
    return panels.facet(facet, columns=2).resolve_scale(y="independent").resolve_axis(x="independent")


def quantile_chart(scale: tuple[float, ...], name: str) -> Any:
    """Percentiles of a cosine as a curve."""
    with needs("plot", "lab"):
        import altair as alt
        import pandas as pd
    last = len(scale) - 1
    rows = pd.DataFrame({"cosine": scale, "percent below": [100 * i / last for i in range(last + 1)]})
    across = alt.X("cosine:Q", title=name, scale=alt.Scale(zero=False))
    return alt.Chart(rows.round(4), width=420, height=220).mark_line().encode(across, alt.Y("percent below:Q"))
