"""What each plan asked, and what became of it: every hypothesis with its answer, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from isonb.runtime.told import counted
from isonb_lab.claims.comparing import ABOVE
from isonb_lab.claims.design import PLAIN
from isonb_lab.claims.study import Study
from isonb_lab.claims.verdicts import NOT_TESTABLE, UNTESTABLE, Judgement, PredictionJudgement, together
from isonb_lab.papers.studies import load_study
from isonb_lab.places import EXPERIMENTS_FOLDER
from isonb_lab.runs.recordings import FOLDER, recorded, scored
from isonb_lab.sweeps.cost import Estimate, estimate
from isonb_lab.sweeps.grids import grid_sizes

from . import arms, deployed, dial, dose, evidence_methods, failed_runs, methods_by_readers, prices, read_where
from .hypotheses import NOT_RUN as NO_RUNS
from .hypotheses import Answer as Outcome
from .undecided import OPEN as UNDECIDED

PLANS = {  # what each is called in prose
    "evidence_plan": "evidence",
    "dial_plan": "the dial",
    "read_where_plan": "what is read",
    "own_cells_plan": "the papers' own cells",
    "deployed_plan": "the dial on unread text",
    "real_models_plan": "larger models",
}
GRIDS = {  # whose runs answer a plan; a second phase has none before the first has chosen its options
    "read_where_plan": (("read_where", "full"),),
    "own_cells_plan": (("own_cells", "full"), ("own_cells_minilm", "full")),
    "real_models_plan": (("real_models", "small"), ("real_models", "full")),
}
CLAIMS_ELSEWHERE = {arms.LEARNED, "evidence_methods"}  # recordings of the evidence plan that claims are judged on
STATUSES = ANSWERED, IN_PART, OPEN, NOT_RUN = "answered", "in part", "open", "not run"
PLACES = {"english_sentiment": "sentiment (tiny)", "sst2": "SST-2 (tiny)"}
DOSES = ("D1", "D2", "D3", "D4", "D5")
RELEASED = ("I1", "I2", "I3", "I4")

# What was known of a hypothesis when its runs were judged, as its plan and the ledger tell; what isn't here was blind.
BLIND, REPEAT, CHANGED = "blind", "repeat", "rule changed after"
KNOWN: Mapping[str, Mapping[str, str]] = {
    "evidence_plan": dict.fromkeys((*DOSES, "H1", "H2", "claim"), CHANGED),
    "dial_plan": dict.fromkeys(("H1", "H2", "H3", "H5", "H7", "H8", "H9"), REPEAT)
    | dict.fromkeys(("H4", "H6"), CHANGED),
    "read_where_plan": dict.fromkeys(("W1", "W2", "F1"), REPEAT),
    "own_cells_plan": {"claim": CHANGED},
    "deployed_plan": dict.fromkeys(("E1", "E2", "E3", "E4", "E5", "E8"), REPEAT) | dict.fromkeys(("E6", "E7"), CHANGED),
    "real_models_plan": dict.fromkeys(("M1", "M2", "M3", "M4"), CHANGED),
}


@dataclass(frozen=True)
class Answer:
    """``status``: of :data:`STATUSES`; ``why``: the outcome, or why there is none; ``known``: before it was judged.

    A claim is answered "in part" where runs decide it and others that are planned for it have no record.
    """

    plan: str
    hypothesis: str
    asks: str
    status: str
    why: str

    @property
    def known(self) -> str:
        """What was known before it was judged: seen on fewer texts or seeds, or a rule changed with its runs known."""
        return KNOWN[self.plan].get(self.hypothesis.split()[0], BLIND)


def text_of(plan: str) -> str:
    """A plan as it stands now."""
    return (EXPERIMENTS_FOLDER / f"{plan}.md").read_text(encoding="utf-8")


def hypotheses(plan: str) -> dict[str, str]:
    """The hypotheses of a plan by their name, in its order: rows of its tables that begin with a letter and number.

    A plan of claims has rows that begin with the claims' numbers; a row of several claims is several.

    >>> list(hypotheses("dial_plan"))[:2]
    ['H1', 'H2']
    """
    named = dict(re.findall(r"^\| ([A-Z]\d+) \| ([^|]+?) \|", text_of(plan), re.MULTILINE))
    return {name: asks for name, asks in named.items() if not name.startswith("C")} | _claims(plan)


def _claims(plan: str) -> dict[str, str]:
    """The claims that a plan asks about: "2" or "23 to 25", "8, I-STAR"."""
    rows = re.findall(r"^\| (C\d(?: \w+)?|\d+(?: to \d+)?)(?:, [^|]+)? \| ([^|]+?) \|", text_of(plan), re.MULTILINE)
    results: dict[str, str] = {}
    for names, asks in rows:
        first, _, last = names.partition(" to ")
        every = [f"{k}" for k in range(int(first), int(last) + 1)] if last else [first]
        for name in every:
            results.setdefault(f"claim {name}", asks)
    return results


def answers(judged: Mapping[str, Sequence[Judgement]]) -> list[Answer]:
    """Every hypothesis of every plan with its answer. ``judged``: the verdicts of the studies by name."""
    of_claims = {f"claim {item.claim.number}": (load_study(name), item) for name in judged for item in judged[name]}
    rows = []
    for plan in PLANS:
        statuses = OUTCOMES[plan]() if plan in OUTCOMES else {}
        cost = price(plan)
        for name, asks in hypotheses(plan).items():
            if name in of_claims:
                rows.append(Answer(plan, name, asks, *CLAIMS[plan](*of_claims[name])))
                continue
            status, why = statuses.get(name, (NOT_RUN, "no run for it is recorded"))
            rows.append(Answer(plan, name, asks, status, why if status == ANSWERED or not cost else f"{why}; {cost}"))
    return rows


def price(plan: str) -> str:
    """What the runs of a plan that aren't recorded would cost, in words; "" where its grids are recorded whole."""
    if plan == "deployed_plan":
        return deployed.price()
    missing = []
    for name, size in GRIDS.get(plan, ()):
        if size not in grid_sizes(name):
            continue
        done = set(recorded(name).runs["run_id"]) if (FOLDER / name).is_dir() else set()
        missing += [run for run in prices.planned(name, size) if run.run_id not in done]
    if not missing:
        return ""
    return f"the plan has {_in_words(estimate(missing))}"


def _in_words(cost: Estimate) -> str:
    hours = counted(max(1, round(cost.cpu_hours)), "hour")
    return f"{counted(cost.runs, 'unrecorded run')}, about {hours} of one core"


def _by_evidence(study: Study, verdict: Judgement) -> tuple[str, str]:
    """What the runs of the evidence plan say of a claim, which have another setting than its paper."""
    parts = [
        part
        for part in verdict.predictions
        if not part.prediction.treatment and set(study.home(part.prediction).design.recordings) <= CLAIMS_ELSEWHERE
    ]
    if not parts:
        return OPEN, " ".join(filter(None, ["no part of it is judged on the plan's runs.", verdict.claim.remark]))
    outcome = together(parts)
    label = replace(verdict, outcome=verdict.outcome_of(parts[0], outcome), deciding=tuple(parts)).label
    return OPEN if outcome in UNDECIDED else ANSWERED, f"{label} ({_places(study, parts)})"


def _places(study: Study, parts: Sequence[PredictionJudgement]) -> str:
    """The suites behind some parts, and how many seeds or runs a cell has."""
    cells = [(study.home(part.prediction).suite_of(cell.name), cell) for part in parts for cell in part.cells]
    told = {suite: cell.n for suite, cell in cells if cell.outcome not in UNTESTABLE}
    return f"{', '.join(told)}; n = {' or '.join(map(str, sorted(set(told.values()))))}"


def _by_own_cells(study: Study, verdict: Judgement) -> tuple[str, str]:
    """A claim by the runs with its paper's treatment; those that are planned and have no record are counted."""
    treatments = [item for item in verdict.claim.treatments if item.method != PLAIN]
    recorded_runs = set(load_study(arms.TRAINED).runs["run_id"])
    cost = prices.cost(lambda run: any(item.has(run) for item in treatments), recorded_runs)
    missing = f"; with its treatment the plan has {_in_words(cost)}" if cost else ""
    parts = [part for part in verdict.predictions if part.prediction.treatment and part.outcome != NOT_TESTABLE]
    if not parts:
        return NOT_RUN, f"no run at the paper's setting is recorded{missing}"
    if not any(part.prediction.treatment for part in verdict.deciding):
        return OPEN, f"only a part of it was run at the paper's setting{missing}"
    status = OPEN if verdict.outcome in UNDECIDED else IN_PART if cost else ANSWERED
    return status, f"{verdict.label} ({verdict.setting}){missing}"


CLAIMS = {"evidence_plan": _by_evidence, "own_cells_plan": _by_own_cells}


def _of_doses() -> dict[str, tuple[str, str]]:
    """D1 to D5 by task and place, and what of them was not run."""
    runs = scored(recorded("evidence_dose").runs)
    results: dict[str, dict[str, list[str]]] = {name: {} for name in DOSES}
    for task, phrase in PLACES.items():
        for place in dose.PLACES:
            for hypothesis in dose.hypotheses(dose.levels(dose.task_runs(runs, task), place)):
                results[hypothesis.name].setdefault(hypothesis.outcome, []).append(f"{phrase} {place}")
    return {
        name: (
            OPEN if "open" in outcomes else ANSWERED,
            "; ".join(f"{outcome} on {', '.join(where)}" for outcome, where in outcomes.items())
            + "; not run on STS-B (minilm), where one run takes ten minutes",
        )
        for name, outcomes in results.items()
    }


def _of_evidence() -> dict[str, tuple[str, str]]:
    """I1 to I4 and H1 to H3."""
    longer = load_study("evidence_methods")
    cells = evidence_methods.cells(longer)
    short = [suite for suite in longer.suites if evidence_methods.last_pass(longer, suite).high > arms.POINT / 2]
    gained = int(((cells["outcome"] == ABOVE) & (cells["mean"] >= arms.POINT)).sum())
    anew = failed_runs.with_new_seeds()
    methods, plain = (f"{item.estimate * item.n:.0f} of {item.n}" for item in (anew.methods, anew.plain))
    fewer_fail = anew.methods.estimate < anew.plain.estimate and anew.p < 0.05
    of_seeds = (OPEN, "its runs are recorded and not judged yet")
    if not (FOLDER / "evidence_istar").is_dir():
        cost = estimate(prices.planned("evidence_istar", "full"))
        needed = f"it needs {cost.runs} runs, about {cost.cpu_hours:.0f} hours of one core"
        other = f"the plan of {PLANS['own_cells_plan']} asks about weights from -5 to 5 with fewer runs"
        of_seeds = (NOT_RUN, f"{needed}; {other}")
    return dict.fromkeys(RELEASED, of_seeds) | {
        "H1": (
            OPEN,
            f"{gained} of {len(cells)} cells gain a point; the plan asks for two tasks whose plain model has stopped "
            f"gaining, and training was cut short on {' and '.join(short) or 'none'}",
        ),
        "H2": (
            ANSWERED if fewer_fail else OPEN,
            f"{'holds' if fewer_fail else 'open'}: {methods} runs failed with CosReg and {plain} with plain training "
            f"(p = {anew.p:.3f}); not run on STS-B at 2e-4. F1 of the plan of {PLANS['read_where_plan']} asked again, "
            f"of more regularisers and with later seeds: {_of_read_where()['F1'][1].partition(' (')[0]}",
        ),
        "H3": (
            NOT_RUN,
            "it needs plain training as long as IsoLayer's second phase; the plan of what is read asks again",
        ),
    }


def _of_dial() -> dict[str, tuple[str, str]]:
    """H1 to H9 of the dial."""
    tables = {name: dial.read(name) for name in ("scores", "best", "parts")}
    return {item.name: (OPEN if item.outcome == "open" else ANSWERED, item.outcome) for item in dial.judge(tables)}


def _of_read_where() -> dict[str, tuple[str, str]]:
    """R1 to R4, W1, W2, F1, F2 and H3 of what is read, over the places where each was asked."""
    outcomes = {}
    for name, rows in read_where.answers(read_where.runs()).groupby("name"):
        why = "; ".join(
            f"{row['why']} ({row['where']})"
            if row["why"] == NO_RUNS
            else f"{row['outcome']} ({row['where']}: {row['why']})"
            for row in rows.to_dict("records")
        )
        waits, run = (rows["outcome"] == "open").any(), (rows["why"] != NO_RUNS).any()
        outcomes[str(name)] = (OPEN if waits and run else NOT_RUN if waits else ANSWERED, why)
    return outcomes


def _statuses(results: Iterable[Outcome]) -> dict[str, tuple[str, str]]:
    return {
        item.name: (NOT_RUN, item.why)
        if item.why == NO_RUNS
        else (OPEN if item.outcome == "open" else ANSWERED, f"{item.outcome}: {item.why}")
        for item in results
    }


OUTCOMES: dict[str, Callable[[], dict[str, tuple[str, str]]]] = {
    "evidence_plan": lambda: _of_doses() | _of_evidence(),
    "dial_plan": _of_dial,
    "read_where_plan": _of_read_where,
    "deployed_plan": lambda: _statuses(deployed.answers(deployed.read())),
    "real_models_plan": lambda: _statuses(
        methods_by_readers.answers(methods_by_readers.parts(methods_by_readers.runs()))
    ),
}
