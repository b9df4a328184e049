"""The errata: every entry is shown, is held by a test that exists, and is what its cell prints."""

import ast
import re
from pathlib import Path

import pytest
import torch

from isonb.errors import InputError
from isonb.measures.spectrum import explained_variance
from isonb_lab.claims.printed import printed
from isonb_lab.figures import errata as figures
from isonb_lab.pages.chapters import Book
from isonb_lab.papers.isolayer import isoscore_bound
from tests.support import normal

BOOK = Book(Path(__file__).resolve().parents[3])
PAGE = BOOK.pick(["reference/methods"])[0]
TEXT = PAGE.source.read_text(encoding="utf-8").partition("(where-papers-and-code-differ)=")[2]
ENTRIES = re.findall(r"^#### (.+?)\n(.*?)(?=^#{2,4} |\Z)", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def result():
    """The entries as the page makes them: its cells run one after another."""
    names: dict[str, object] = {}
    for cell in [*PAGE.code[:2], *(cell for cell in PAGE.code if cell.source in TEXT)]:  # imports, parameters, errata
        if "pages.show" not in cell.source:
            exec(compile(cell.source, "cell", "exec"), names)
    return names["errata"]


@pytest.mark.parametrize(("title", "text"), ENTRIES, ids=[title for title, _ in ENTRIES])
def test_an_entry_cites_a_source_states_our_default_and_names_a_test(title, text):
    keys = set(re.findall(r"@\w+\{(\w+),", (BOOK.root / "book" / "references.bib").read_text(encoding="utf-8")))
    cited = {key for group in re.findall(r"\{cite(?::\w)?\}`([^`]+)`", text) for key in group.split(",")}
    assert cited
    assert cited <= keys
    assert "**Our default:**" in text
    (name,) = re.findall(r"\*\*Tested\s+by\*\*\s+`([^`]+)`", text)
    path, _, test = name.partition("::")
    tree = ast.parse((BOOK.root / path).read_text(encoding="utf-8"))
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_pair_of_readings_differs_and_is_drawn_the_longest_first(result):
    frame = result.frame()
    assert len(frame) == len(ENTRIES)
    assert frame["entry"].is_unique
    assert set(frame["kind"]) == set(figures.KINDS)
    assert frame["apart"].min() > 1e-5
    ours = frame.set_index("entry")["ours"]
    assert ours["Gain of accuracy, IsoLayer"] == pytest.approx(3.166, abs=1e-3)
    assert ours["Bars of far float32 points"] == 0
    assert abs(ours["All-but-the-top without centring"]) < 1e-10
    chart = result.chart().to_dict()
    assert chart["layer"][0]["encoding"]["y"]["sort"][0] == frame.loc[frame["apart"].idxmax(), "entry"]
    (rows,) = chart["datasets"].values()
    assert all(len(set(row["numbers"].split(" / "))) == 2 for row in rows)


def test_gains_that_do_not_follow():
    rows = printed("isolayer", "Table 2")
    wrong = []
    for place, part in rows.groupby(["model", "task"]):
        before, after, gain = (part["value"].iloc[k::3].tolist() for k in range(3))
        wrong += [(*place, g) for b, a, g in zip(before, after, gain, strict=True) if abs(100 * (a / b - 1) - g) > 0.1]
    assert wrong == [("bert-base-cased", "MRPC", 221.2)] * 2


def test_a_baseline_that_is_borrowed():
    here = printed("isolayer", "Table 2", model="bert-base-cased", task="RTE", method="Finetuned LM", metric="accuracy")
    second = printed("isolayer", "Table 3", model="BERT-base", task="RTE", metric="accuracy")
    score = second.set_index("method")["value"]
    assert here["value"].tolist() == [score["IsoBN column, baseline without the method"]] == [67.87]
    assert score["IsoLayer column, baseline without the method"] == 67.72


def test_the_bound_holds_for_clouds_and_not_for_the_tables():
    for seed in range(5):
        x = normal(60, 12, seed=seed) * torch.arange(1, 13)
        shares = torch.linalg.svdvals(x - x.mean(0)).square()
        score = ((shares.sum() ** 2 / shares.square().sum() - 1) / 11).item()
        bounds = [
            isoscore_bound([explained_variance(x, j, center=True)[-1].item() for j in range(1, k)], 12)
            for k in (2, 4, 13)
        ]
        assert score == pytest.approx(bounds[-1])
        assert score <= bounds[1] <= bounds[0]
    assert figures.cells_over_the_bound(*(printed("isolayer", table) for table in ("Table 2", "Table 3"))) == (9, 12)


def test_the_exception_among_seven_sets():
    rows = printed("softdecay", "Table 1", metric="spearman_x100").set_index(["model", "task", "method"])["value"]
    plain = {"bert-base": "BERT", "distilbert-base": "DistilBERT", "albert-base": "ALBERT", "roberta-base": "RoBERTa"}
    lower = [
        (model, task)
        for model, name in plain.items()
        for task in rows[model].index.get_level_values(0).unique()
        if rows[model, task, "SoftDecay"] < rows[model, task, name]
    ]
    assert lower == [("distilbert-base", "SICK-R")]


def test_the_gradient_through_the_svd_is_off_by_more_than_ours():
    assert all(by_svd > 1e3 * ours and ours < 1e-6 for by_svd, ours in map(figures.svd_slopes, range(4)))


def test_an_entry_of_no_kind_or_of_one_reading_is_refused():
    result = figures.Errata()
    with pytest.raises(InputError, match="kind must be one of"):
        result.note("x", "typo", a=1, b=2)
    with pytest.raises(InputError, match="two readings; got 3"):
        result.note("x", "code", a=1, b=2, c=3)
    assert result.rows == []
