"""IsoLayer (Attieh et al., ICDAR 2023) against IsoBN: arms, and claims 23 to 25."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isonb.lab.studies import arms
from isonb.lab.studies.design import PLAIN, UNTAUGHT, Design
from isonb.lab.studies.plan import Settings
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import Claim, Evidence, Part, Units, difference

__all__ = ["AFTER", "BEFORE", "DESIGN", "ISOBN", "LAYER", "READ", "isoscore_bound", "measure"]

LAYER, ISOBN = "Isotropy Layer", "IsoBN"
# The clouds that are measured: an arm, and where in its record.
BEFORE = (LAYER, "end.cls")  # the fine-tuned model of the same run, before its layer
AFTER = (LAYER, "end.second")
READ = (PLAIN, "end.features")  # what the classifier of a plain run reads
# The same in the head to head.
TUNED_BEFORE, TUNED_AFTER = (arms.ISOLAYER, "end.cls"), (arms.ISOLAYER, "end.second")
TUNED_SCALED = (arms.ISOBN, "end.features")
DETAILS = {", raw": "", ", centred": "_centered"}
SAME_SCORE = 0.02


def arm_of(settings: Settings) -> str | None:
    """The method, with what differs from the paper's."""
    return {"none": PLAIN, "isolayer": LAYER, "isobn": ISOBN}.get(settings.get("method.name", "none"))


def measure(study: Study, place: tuple[str, str], name: str, suites: Sequence[str], cell: str = "") -> Units:
    """A measure of the cloud at a place, one number a run."""
    arm, where = place
    return study.units(f"metric.{where}.{name}", arm, suites, cell)


def isoscore_bound(shares: Sequence[float], dim: int, slack: float = 0.0) -> float:
    """The highest IsoScore that explained variances of 1, 2 and 3 components allow; ``slack`` is their rounding.

    With shares of the variance p1, p2, p3, the squares of all shares sum to p1^2 + p2^2 + p3^2 or more.

    >>> isoscore_bound([0.5, 1.0, 1.0], 11)
    0.1
    """
    one, two, three = shares
    least = (one - slack, two - one - 2 * slack, three - two - 2 * slack)
    return (1 / sum(max(share, 0.0) ** 2 for share in least) - 1) / (dim - 1)


def first_score(study: Study, suites: Sequence[str]) -> Units:
    """The score of an IsoLayer run before its layer."""
    found: dict[tuple[str, int], float] = {}
    runs = study.runs[study.runs["arm"] == LAYER]
    for suite, metric in runs[["suite", "metric"]].drop_duplicates().itertuples(index=False):
        if suite in suites:
            found |= study.units(f"metric.first_phase.{metric}", LAYER, [suite])
    return found


def _rise(study: Study, suites: Sequence[str]) -> Evidence:
    return difference(*(measure(study, place, "isoscore", suites) for place in (TUNED_AFTER, TUNED_BEFORE)))


def _variance(a: tuple[str, str], b: tuple[str, str], k: int, words: str) -> tuple[Part, ...]:
    """Explained variance of k components at place a less that at b in the head to head: a part raw, one centred."""

    def change(ending: str) -> Callable[[Study, Sequence[str]], Evidence]:
        name = f"explained_variance_{k}{ending}"
        return lambda study, suites: difference(measure(study, a, name, suites), measure(study, b, name, suites))

    return tuple(
        Part(f"{words}{detail}", change(ending), "less", gated=True, runs_of=arms.HEAD_TO_HEAD, arms=(a[0], b[0]))
        for detail, ending in DETAILS.items()
    )


def _never(study: Study, suites: Sequence[str]) -> Evidence:
    return {}


LARGER = "needs a larger encoder"
CLAIMS = (
    Claim(
        23,
        "The layer raises IsoScore and the score",
        (
            Part(
                "head to head: IsoScore, after the layer less before",
                _rise,
                "greater",
                gated=True,
                runs_of=arms.HEAD_TO_HEAD,
                arms=(arms.ISOLAYER,),
            ),
            arms.scored(arms.ISOLAYER),
        ),
    ),
    Claim(
        24,
        "The layer lowers EV1, less for RoBERTa-large",
        (
            *_variance(TUNED_AFTER, TUNED_BEFORE, 1, "head to head: EV1, after the layer less before"),
            Part(f"EV1 falls less in the larger encoder ({LARGER})", _never, "less"),
        ),
    ),
    Claim(
        25,
        "On a par with IsoBN in the score; EV3 lower for BERT, higher for RoBERTa",
        (
            arms.scored(arms.ISOLAYER, arms.ISOBN, "equal", margin=SAME_SCORE),
            *_variance(TUNED_AFTER, TUNED_SCALED, 3, "head to head: EV3, IsoLayer less IsoBN"),
            Part(f"EV3 above IsoBN's in the larger encoder ({LARGER})", _never, "greater"),
        ),
    ),
)
DESIGN = Design(
    name="isolayer",
    page="papers/isolayer",
    recordings=("isolayer", "baselines"),
    arm=arm_of,
    claims=CLAIMS,
    reservation=UNTAUGHT,
)
