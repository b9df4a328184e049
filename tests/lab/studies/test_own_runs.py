"""A book that reads a reader's runs: arms and suites named from settings, verdicts of these runs, chapters on them."""

import re
from dataclasses import replace

import jupytext
import nbformat
import papermill
import pytest
import yaml
from cola import write_rows

from isonb_lab.claims.design import StudyError
from isonb_lab.claims.verdicts import Claim
from isonb_lab.papers import arms, head_to_head, heads, istar, plain_encoders
from isonb_lab.papers.studies import DESIGNS, load_study
from isonb_lab.places import BOOK
from isonb_lab.runs.grid_files import grid_blocks
from isonb_lab.runs.record import Record, read_record, write_record
from isonb_lab.runs.recordings import FOLDER
from isonb_lab.runs.settings import resolve
from isonb_lab.runtime.glue import glued
from isonb_lab.sweeps.grids import load_grid
from isonb_lab.sweeps.inline import run_all
from tests.lab import own_runs, random_models

SST2, RTE = (f"{task} ({own_runs.BERT})" for task in ("SST-2", "RTE"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return own_runs.write(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def study(folder):
    return load_study("istar", runs=folder)


def test_arms_are_named_by_the_paper_or_by_method_and_options(study, folder):
    assert set(study.suites) == {SST2, RTE}
    assert {"none", "λ = -1", "λ = -5", "λ = +1", "CosReg", "softdecay", "entropy, weight 0.5"} <= set(study.arms)
    duel = load_study("head_to_head", runs=folder)
    assert {"I-STAR (lower), weight -1", "I-STAR (lower), weight -5", "I-STAR (raise)", "SoftDecay"} <= set(duel.arms)


def test_runs_that_were_trained_differently_are_not_compared(tmp_path):
    own_runs.write(tmp_path, tasks=["sst2"], methods={"none": 0})
    record = read_record(next((tmp_path / "records").glob("*.json")))
    write_record(tmp_path / "records", replace(record, config=record.config | {"learning_rate": 0.5}, named=""))
    suites = load_study("istar", runs=tmp_path).suites
    assert sorted(suite.endswith("learning rate 0.5") for suite in suites) == [False, True]


def test_settings_of_a_method_are_not_mixed_though_they_have_other_seeds(tmp_path):
    """A gain of 0.06 at one weight and of 0.02 at another, with three seeds each, are two arms."""
    weak, strong = (("istar", ("weight", weight)) for weight in (-0.1, -5))
    own_runs.write(tmp_path, tasks=["sst2"], methods={"none": 0, weak: 6})
    own_runs.write(tmp_path, tasks=["sst2"], methods={"none": 0, strong: 2}, seeds=range(3, 6))
    duel = load_study("head_to_head", runs=tmp_path)
    gains = {arm: duel.paired("score", arm)[["n", "mean"]].values.tolist() for arm in head_to_head.methods_of(duel)}
    assert gains == {
        "I-STAR (lower), weight -0.1": [[3, pytest.approx(0.064, abs=0.005)]],
        "I-STAR (lower), weight -5": [[3, pytest.approx(0.036, abs=0.02)]],
    }


def test_one_layer_that_is_not_the_last_is_no_arm_of_the_last_layer(tmp_path):
    first = ("istar", ("weight", -1), ("layers", 1))
    own_runs.write(tmp_path, tasks=["sst2"], methods={"none": 0, first: 2})
    duel = load_study("head_to_head", runs=tmp_path)
    assert set(duel.arms) == {"none", "istar, layers 1"}


def test_a_claim_about_named_tasks_finds_them_whatever_stands_behind_the_name(tmp_path):
    """Of minilm with two rates, and of another encoder on a task that minilm didn't run."""
    methods = {"none": 0, "entropy": 3}
    own_runs.write(tmp_path, tasks=["sst2"], model="minilm", methods=methods)
    for path in (tmp_path / "records").glob("*.json"):
        record = read_record(path)
        other = record.config | {"learning_rate": 0.5}
        write_record(tmp_path / "records", replace(record, config=other, named=""))
    own_runs.write(tmp_path, tasks=["mrpc"], methods=methods)
    duel = load_study("head_to_head", runs=tmp_path)
    rates = sorted(suite for suite in duel.suites if suite.startswith("SST-2"))
    assert [suite.partition(", ")[0] for suite in rates] == ["SST-2", "SST-2"]
    (rise,) = (v for v in duel.verdicts() if v.claim.number == "C1 up")
    score = next(part for part in rise.predictions if part.prediction.what == "score, entropy less none")
    assert {cell.name for cell in score.cells if cell.n == 3} == {*rates, f"MRPC ({own_runs.BERT})"}


def test_claims_are_judged_on_these_runs(study, tmp_path):
    own_runs.write(tmp_path, tasks=["rte"], model="another")
    others = load_study("istar", runs=tmp_path)
    (ninth, of_bert) = (
        [verdict.label for verdict in each.verdicts() if verdict.claim.number == 9] for each in (others, study)
    )
    assert ninth == ["contradicted"]  # as made: the score rises with isotropy among the paper's weights on RTE
    assert of_bert == ["not tested at its setting"]  # these runs have zeta 0.2; its Table 2 has 0.8 on RTE
    gain = next(entry for entry in istar.CLAIMS if entry.number == 8).predictions[6]
    cells = gain.evidence(study.home(gain), ())
    assert cells[f"{SST2}, weight -1", 0] == pytest.approx(0.06)


@pytest.mark.parametrize(("name", "number", "verdict"), [("istar", 9, "contradicted"), ("softdecay", 21, "supported")])
def test_a_task_that_was_trained_in_two_ways_has_the_verdict_of_one(tmp_path, name, number, verdict):
    """Its suites are then named by the epochs, of which a claim's own runs have one number: runs find them."""
    for methods, epochs in ((own_runs.METHODS, 3), ({"none": 0}, 4)):
        own_runs.write(tmp_path, tasks=["rte"], model="another", methods=methods, epochs=epochs)
        (judged,) = (one for one in load_study(name, runs=tmp_path).verdicts() if one.claim.number == number)
        assert [cell.name for part in judged.deciding for cell in part.cells] == ["RTE (another)"]
        assert (judged.outcome, judged.setting.startswith("another; RTE; ")) == (verdict, True)


def test_a_recording_of_the_book_as_a_readers_folder_says_what_it_says_in_the_book():
    """In each cell at a paper's setting whose runs are all in it; its tasks were trained in several ways."""
    own = load_study(arms.TRAINED, runs=FOLDER / "own_cells_minilm")
    mine, theirs = outcomes_by_runs(own), outcomes_by_runs(load_study(arms.TRAINED))
    shared = {key: outcome for key, outcome in theirs.items() if key[1] <= own.settings.keys()}
    assert len(shared) > 50
    assert {key: mine[key] for key in shared} == shared


def outcomes_by_runs(study):
    """The outcomes of the cells of each prediction about a paper's setting, by its text, the cell's runs and detail."""
    parts = [part for name in PAGES for claim in DESIGNS[name].claims for part in claim.predictions if part.treatment]
    claims = tuple(Claim(k, "", (replace(part, runs_of=""),)) for k, part in enumerate(parts))
    outcomes = {}
    for verdict in replace(study, design=replace(study.design, claims=claims)).verdicts():
        (part,) = verdict.predictions
        behind = study.treated(part.prediction, [cell.name for cell in part.cells])
        for cell in part.cells:
            runs = frozenset(run for pair in behind[cell.name] for run in pair if run)
            outcomes.setdefault((part.prediction.what, runs), []).append(cell.outcome)
    return outcomes


def test_each_method_of_these_runs_is_compared_on_the_vectors_that_it_changes(folder, tmp_path):
    duel = load_study("head_to_head", runs=folder)
    lower = ("I-STAR (lower), weight -1", "I-STAR (lower), weight -5")
    assert set(head_to_head.compared(duel)) == {"I-STAR (raise)", "entropy", "SoftDecay", "IsoLayer", "CosReg", *lower}
    assert [duel.design.acts_on[arm] for arm in lower] == ["tokens", "tokens"]
    assert head_to_head.settings_of(duel)[RTE, lower[1]] == "λ = -5"
    assert heads.span(duel.runs, ["suite", "arm"]) == "11.8 to 21.0 of 768"  # 1 + 767 IsoScore-U, as own_runs makes it
    own_runs.write(tmp_path, tasks=["rte"], seeds=range(2))
    with pytest.raises(StudyError, match="with 3 seeds in common"):
        head_to_head.compared(load_study("head_to_head", runs=tmp_path))


def test_plain_encoders_are_those_of_these_runs(folder, tmp_path):
    study = load_study("plain_encoders", runs=folder)
    assert plain_encoders.main_encoder(study) == own_runs.BERT
    assert plain_encoders.tasks_of(study, own_runs.BERT) == ("RTE", "SST-2")
    above = next(verdict for verdict in study.verdicts() if verdict.claim.number == 26).predictions[0]
    assert {cell.name: round(cell.interval.estimate, 3) for cell in above.cells if cell.interval} == {"RTE": 0.304}
    own_runs.write(tmp_path, methods={"softdecay": 0})
    with pytest.raises(StudyError, match="must hold plain fine-tuning"):
        plain_encoders.main_encoder(load_study("plain_encoders", runs=tmp_path))


def test_one_similarity_set_has_a_place_for_each_encoder(tmp_path):
    for model in ("minilm", own_runs.BERT):
        config = resolve({"experiment": "similarity", "task": "sts13", "model": model})
        write_record(tmp_path / "records", Record(config, {"spearman.all": 0.5}))
    assert set(load_study("plain_encoders", runs=tmp_path).suites) == {"STS-13", f"STS-13 ({own_runs.BERT})"}


@pytest.mark.parametrize(("damaged", "message"), [([], "none in"), (["a.json"], "1 damaged")])
def test_a_folder_without_whole_records_is_refused(tmp_path, damaged, message):
    for name in damaged:
        (tmp_path / name).write_text("{")
    with pytest.raises(StudyError, match=f"got {message}"):
        load_study("istar", runs=tmp_path)


def executed(name, folder, monkeypatch, **parameters):
    """A page, run by papermill with these parameters, and its outputs."""
    monkeypatch.chdir((BOOK / name).parent)
    chapter, out = folder / "chapter.ipynb", folder / "made.ipynb"
    nbformat.write(jupytext.read(BOOK / f"{name}.md"), chapter)
    notebook = papermill.execute_notebook(chapter, out, parameters, kernel_name="python3", progress_bar=False)
    return notebook, "\n".join(str(output) for cell in notebook.cells for output in cell.get("outputs", []))


def words_of(result):
    """The verdict of each claim, as the page has it."""
    return {name: text for name, text in glued(result).items() if re.fullmatch(r"claim-\d+", name)}


SMALL = {"examples": 64, "epochs": 1, "seeds": 1}
PAGES = {
    "istar": {"weight": 5.0, "zeta": 0.4},
    "shrink_the_longest": {"weight": 0.5, "in_cluster": 0.05},
    "softdecay": {"alpha": -0.6, "mode": "safe"},
    "isolayer": {"alpha": 0.1, "layer_epochs": 4},
}


@pytest.mark.slow(seconds=60)
@pytest.mark.parametrize("name", PAGES)
def test_a_paper_page_reads_these_runs_and_runs_another_option(name, folder, tmp_path, monkeypatch):
    usual, _ = executed(f"papers/{name}", tmp_path, monkeypatch, **SMALL)
    local, shown = executed(f"papers/{name}", tmp_path, monkeypatch, runs=str(folder), **SMALL, **PAGES[name])
    assert own_runs.BERT in shown
    assert words_of(usual)
    assert words_of(local) != words_of(usual)
    first, other = (
        next(cell for cell in result.cells if "live.SMALL" in cell.source or "live.small_runs" in cell.source)
        for result in (usual, local)
    )
    assert first.outputs != other.outputs


GAIN = "SoftDecay, IsoLayer, CosReg, I-STAR (lower), weight -1 and I-STAR (lower), weight -5"
ABOVE = "RTE (0.804 against 0.500) and SST-2 (0.804 against 0.500)"
LAYERED = "the highest mean of a task in these runs that learned is 0.121, up from 0.021"
RESULTS = {  # parameters of a page, and what it then says
    "papers/four_recipes": ({"steps": 5}, {"layer-ours": f"{LAYERED} on {RTE}"}),
    "papers/istar_more": ({"population": 6000, "draws": 4}, {}),
    "papers/softdecay_more": (
        SMALL
        | {"pairs": 40, "listed": 9, "tuning": 1, "sentences": 32}
        | {"task": "english_similarity", "alpha": -0.6},
        {"deepest": "–", "n-recorded": "0", "live-task": "english_similarity"},
    ),
    "results/head_to_head": (
        {},
        {"above": f"{GAIN} on {RTE}; {GAIN} on {SST2}", "over-below": "I-STAR (raise)", "n-tests": "14"}
        | {"linear-plain STS-B": "–"},
    ),
    "results/plain_encoders": (
        {"examples": 64, "epochs": 1, "held_out": 60},
        {"encoder": own_runs.BERT, "n-plain": "6", "minilm-above": ABOVE, "our-whitening": "–"}
        | {"claim-26": "inconclusive", "claim-27": "contradicted"},
    ),
    "results/claims": ({}, {"n-runs": "48", "n-seeds": "3", "encoders": own_runs.BERT}),
    "results/who_is_right": ({}, {"contradiction-C1-down": "contradicted"}),
    "results/ledger": ({}, {"n-runs": "48", "n-behind": "48", "n-beside": "0"}),
}


@pytest.mark.slow
def test_a_page_says_that_these_runs_lack_what_it_tells_of_the_books(tmp_path, monkeypatch):
    own_runs.write(tmp_path, methods={"none": 0})
    recipes, _ = executed("papers/four_recipes", tmp_path, monkeypatch, runs=str(tmp_path), steps=5)
    assert glued(recipes)["layer-ours"] == "no run here that learned has such a layer"


@pytest.mark.slow(seconds=30)
@pytest.mark.parametrize("name", RESULTS)
def test_a_page_of_results_is_of_these_runs(name, folder, tmp_path, monkeypatch):
    parameters, values = RESULTS[name]
    notebook, shown = executed(name, tmp_path, monkeypatch, runs=str(folder), **parameters)
    assert own_runs.BERT in shown
    assert glued(notebook).items() >= values.items()


TEXTS = ("A narrow cone.", "A wide sphere.")  # the label of a made-up row is told by its first sentence
FITTING = {"precision": "float32", "max_length": 128}  # no half precision without a GPU; so long are inputs at most
LEARNING = {"learning_rate": 0.01}  # at the paper's rate so small an encoder learns nothing


def part_of_figure_3():
    """The first block of I-STAR's own grid that varies λ on RTE, cut to one encoder, one λ > 0 and three seeds."""
    blocks = (block for _, block in grid_blocks("istar", "paper") if "rte" in block.get("task", ()))
    block = next(block for block in blocks if isinstance(block["method"][-1]["weight"], list))
    plain, method = block["method"]
    chosen = {"model": own_runs.BERT, "task": "rte", "seed": [0, 1, 2], "method": [plain, method | {"weight": 1}]}
    return block | chosen | FITTING | LEARNING


@pytest.mark.slow(seconds=45)
def test_a_reader_runs_a_part_of_the_papers_grid_and_the_page_judges_these_runs(tmp_path, monkeypatch):
    """With a small random BERT under its name of the hub and made-up rows; a file says which part, no option does.

    The runs are made in this process: `isonb sweep`, which starts one for each, has tests of its own.
    """
    random_models.save("bert", tmp_path / "models" / own_runs.BERT)
    monkeypatch.setenv("ISONB_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for split, count in {"train": 512, "validation": 40}.items():
        rows = [{"sentence1": TEXTS[i % 2], "sentence2": f"It is near {i}.", "label": i % 2} for i in range(count)]
        write_rows(tmp_path / f"data/glue/rte/{split}.parquet", rows)
    grid, data, out = (tmp_path / name for name in ("grid.yaml", "data", "runs"))
    grid.write_text(yaml.safe_dump({"paper": [part_of_figure_3()]}), encoding="utf-8")
    monkeypatch.setenv("ISONB_DATA", str(data))
    for record in run_all([planned.config for planned in load_grid(grid, "paper")], workers=1):
        write_record(out / "records", record)
    chapter, shown = executed("papers/istar", tmp_path, monkeypatch, runs=str(out), **SMALL)
    told = {"own-place": f"{own_runs.BERT} on RTE", "claim-8": "not tested at its setting"}  # no weight below 0 has run
    assert glued(chapter).items() >= told.items()
    words = "supported|contradicted|inconclusive|not testable"
    verdict = re.search(rf"IsoScore\*, λ = 1, last layer less the others.*?({words})", shown, re.DOTALL)
    assert verdict[1] != "not testable"
