"""A book that reads a reader's runs: arms and suites named from settings, verdicts of these runs, chapters on them."""

import re
from pathlib import Path

import jupytext
import nbformat
import papermill
import pytest

from isonb_lab.claims.design import StudyError
from isonb_lab.papers import head_to_head, heads, istar, plain_encoders
from isonb_lab.papers.studies import load_study
from isonb_lab.runs.record import Record, read_record, write_record
from isonb_lab.runs.settings import resolve
from isonb_lab.runtime.glue import glued
from tests.lab import own_runs

BOOK = Path(__file__).resolve().parents[3] / "book"
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
    other = type(record)(record.config | {"learning_rate": 0.5}, record.metrics, record.series, record.manifest)
    write_record(tmp_path / "records", other)
    suites = load_study("istar", runs=tmp_path).suites
    assert len(suites) == 2
    assert any(suite.endswith("learning rate 0.5") for suite in suites)


def test_claims_are_judged_on_these_runs(study):
    text = {verdict.claim.number: verdict.label for verdict in study.verdicts()}
    book = {item.claim.number: item.label for item in load_study("istar").verdicts()}
    assert text[9] == "contradicted"  # as made: the score rises with isotropy among the paper's weights on RTE
    assert text[9] != book[9]
    gain = next(entry for entry in istar.CLAIMS if entry.number == 8).predictions[6]
    cells = gain.evidence(study.home(gain), ())
    assert cells[f"{SST2}, weight -1", 0] == pytest.approx(0.06)


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


@pytest.mark.parametrize("make", [lambda folder: None, lambda folder: (folder / "a.json").write_text("{")])
def test_a_folder_without_whole_records_is_refused(tmp_path, make):
    make(tmp_path)
    with pytest.raises(StudyError, match=r"got (none in|1 damaged)"):
        load_study("istar", runs=tmp_path)


def executed(name, folder, **parameters):
    """The outputs of a page, run by papermill with these parameters."""
    nbformat.write(jupytext.read(BOOK / f"{name}.md"), folder / "chapter.ipynb")
    notebook = papermill.execute_notebook(
        folder / "chapter.ipynb",
        folder / "made.ipynb",
        parameters=parameters,
        kernel_name="python3",
        progress_bar=False,
    )
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


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_paper_page_reads_these_runs_and_runs_another_option(name, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(BOOK / "papers")
    usual, _ = executed(f"papers/{name}", tmp_path, **SMALL)
    local, shown = executed(f"papers/{name}", tmp_path, runs=str(folder), **SMALL, **PAGES[name])
    assert own_runs.BERT in shown
    assert words_of(usual)
    assert words_of(local) != words_of(usual)
    live = [
        next(cell for cell in result.cells if "live.SMALL" in cell.source or "live.small_runs" in cell.source)
        for result in (usual, local)
    ]
    assert live[0].outputs != live[1].outputs


@pytest.mark.slow
def test_the_layers_of_these_runs_are_on_the_page_behind(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(BOOK / "papers")
    assert own_runs.BERT in executed("papers/istar_more", tmp_path, runs=str(folder), population=6000, draws=4)[1]


@pytest.mark.slow
def test_the_head_to_head_of_these_runs(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(BOOK / "results")
    notebook, shown = executed("results/head_to_head", tmp_path, runs=str(folder))
    values = glued(notebook)
    gain = "SoftDecay, IsoLayer, CosReg, I-STAR (lower), weight -1 and I-STAR (lower), weight -5"
    assert values["above"] == f"{gain} on {RTE}; {gain} on {SST2}"
    assert (values["over-below"], values["n-tests"], values["linear-plain STS-B"]) == ("I-STAR (raise)", "14", "–")
    assert f"doesn't hold here with runs = '{folder}'" in shown


@pytest.mark.slow
def test_the_plain_encoders_of_these_runs(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(BOOK / "results")
    small = {"examples": 64, "epochs": 1, "held_out": 60}
    notebook, shown = executed("results/plain_encoders", tmp_path, runs=str(folder), **small)
    values = glued(notebook)
    assert (values["encoder"], values["n-plain"]) == (own_runs.BERT, "6")
    assert values["minilm-above"] == "RTE (0.804 against 0.500) and SST-2 (0.804 against 0.500)"
    assert (values["claim-26"], values["claim-27"], values["our-whitening"]) == ("inconclusive", "contradicted", "–")
    assert f"runs = '{folder}'" in shown
