"""What an audit says, section by section: soundness, what stands out, the floor, the shape, what would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isonb.auditing.parts import AuditResult, Finding, Layer, Match, Reading, Remedy
from isonb.auditing.told import Code, Columns, Item, Section, fine, fixed
from isonb.measures.registry import titles
from isonb.runtime.terminal import printable

__all__ = ["SHOWN", "audit_sections", "audit_title", "stands_out"]

SHOWN = titles("mean_cosine", "isoscore", "participation_ratio_unbiased", "two_nn")  # of each layer
JUDGED = titles("mean_cosine", "isoscore_unbiased")  # of each remedy
MOST_LAYERS = 8  # on a screen


def audit_title(audit: AuditResult) -> str:
    """What was audited, and how much of it was measured."""
    of = f"{printable(audit.source)}: " if audit.source else ""
    return f"{of}{audit.n:,} vectors of {audit.d} dimensions ({audit.measured:,} measured)"


def stands_out(findings: Sequence[Finding]) -> Section:
    """The findings with the texts they quote."""
    items = [Item(one.severity, f"{one.text} {one.advice}".rstrip(), one.examples) for one in findings]
    return Section("What stands out" if items else "Nothing stands out", items, shown=not items)


def audit_sections(audit: AuditResult, full: bool) -> Iterator[Section]:
    """All sections; ``full``: with every layer, and what is said on a page alone."""
    if audit.checks:
        passed = sum(check.state == "ok" for check in audit.checks)
        heading = f"Is the instrument sound? {passed} of {len(audit.checks)} checks passed"
        yield Section(heading, [Item(one.state, f"{one.name}: {one.text}") for one in audit.checks], shown=True)
    yield stands_out(audit.findings)
    head = ["cosine of two random rows", *audit.floor["random cosine"]]
    rows = [[cloud, *map(fine, quantiles.values())] for cloud, quantiles in audit.floor.items()]
    told = "A score below the last columns says nothing: so alike are rows that have nothing in common."
    floor = Columns("Quantiles of the cosine", head, rows)
    yield Section("How alike are two random rows?", [floor, told] if full else [floor])
    head = ["measure", "value", "95% interval", "half the rows", "Gaussian"]
    shape = Columns("Each measure with its 95% interval", head, [*map(_reading, audit.readings)])
    withheld = [audit.withheld] if audit.withheld else []
    yield Section("The shape", [shape, *withheld, *_by_layer(audit.layers, full)])
    if audit.matches:
        caption = "Thresholds, chosen on one half and measured on the other, with 95% intervals"
        head = ["threshold", "cosine", "percentile", "false matches", "true matches"]
        yield Section("A threshold", [Columns(caption, head, [*map(_match, audit.matches)])])
    head = ["before → after, held out", *JUDGED.values(), ""]
    tried = [Columns("Fitted on one half, judged on the other", head, [*map(_remedy, audit.remedies)], remarks=True)]
    if audit.remedies or audit.score:
        yield Section("What would help", [*tried[: len(audit.remedies)], audit.score])
    if audit.next_steps:
        yield Section("What to do next", [Code(audit.next_steps)], shown=True)


def _reading(reading: Reading) -> list[str]:
    interval = f"{fixed(reading.low)} to {fixed(reading.high)}"
    return [reading.name, fixed(reading.value), interval, fixed(reading.fewer), fixed(reading.gaussian)]


def _match(match: Match) -> list[str]:
    rates = [match.false_matches, match.recall]
    shares = [f"{one[0]:.2%} ({one[1]:.1%} to {one[2]:.1%})" if one else "no labels" for one in rates]
    return [match.cloud, fine(match.threshold), f"{match.percentile:.1f}", *shares]


def _remedy(remedy: Remedy) -> list[str]:
    pairs = zip(remedy.before, remedy.after, strict=True)
    moved = [f"{fixed(before, 2)} → {fixed(after, 2)}" for (_, before), (_, after) in pairs]
    return [remedy.name, *moved, remedy.verdict]


def _by_layer(layers: Sequence[Layer], full: bool) -> Iterator[Columns]:
    """One row a layer, each measure with half its interval; at last what an isotropic Gaussian reads."""
    if not layers:
        return
    step = 1 if full else max(1, -(-(len(layers) - 1) // (MOST_LAYERS - 1)))
    usual: dict[str, float] = {}
    rows = []
    for layer in layers:
        known = {reading.measure: reading for reading in layer.readings}
        usual |= {name: reading.gaussian for name, reading in known.items()}
        read = [known.get(name) for name in SHOWN]
        cells = [f"{fixed(r.value, 2)} ± {(r.high - r.low) / 2:.2f}" if r else "unsure" for r in read]
        rows.append([f"layer {layer.number}", *cells])
    kept = [row for i, row in enumerate(rows) if i % step == 0 or i == len(rows) - 1]
    kept.append(["Gaussian", *(fixed(usual[name], 2) if name in usual else "unsure" for name in SHOWN)])
    yield Columns(f"By layer, of {layers[0].rows:,} texts, with 95% intervals", ["by layer", *SHOWN.values()], kept)
