"""What is shown of each table and figure, counted by hand on made-up runs, and on the built pages."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from isonb_lab.claims.design import Design
from isonb_lab.claims.treated_runs import settings_by_run
from isonb_lab.claims.treatment import Treatment
from isonb_lab.papers import coverage, paper_items
from isonb_lab.papers.studies import load_study
from isonb_lab.places import BOOK

Axis, Item, ITEMS = coverage.Axis, coverage.Item, paper_items.ITEMS
DRAWN = [entry for entry in ITEMS if entry.caption]
HTML = BOOK.parent / "_build" / "html" / "book"


def study(**runs):
    ours = {"arm": ["none", "I-STAR", "CosReg"], "method.name": ["none", "istar", "cosreg"]}
    frame = pd.DataFrame({"run_id": ["a", "b", "c"], **ours, **runs})
    steps = [("a", k) for k in range(4)] + [("b", k) for k in range(4)]
    series = pd.DataFrame(steps, columns=["run_id", "step"]).assign(name="layer.end.x", value=0.0)
    return SimpleNamespace(runs=frame, series=series, settings=settings_by_run(frame))


def count(axis, **item):
    studies = {
        "page": study(task=["sst2_joint", "sst2", "rte"], **{"method.weight": [None, -1.0, 1.0]}),
        "all": study(task=["qnli", "sst2", "rte"], **{"method.weight": [None, -5.0, 1.0]}),
    }
    (result,) = coverage.counted(Item("001", "Table 1", "", "", "", (axis,), "page", "all", **item), studies)
    return result.shown, result.recorded, result.printed, str(result)


def test_values_of_the_paper_that_some_run_of_the_page_has_are_shown():
    tasks = Axis("tasks", ("sst2", "rte", "qnli", "qqp"), "task")
    assert count(tasks) == (2, 3, 4, "2 of 4 (3 recorded)")
    weights = Axis("settings", (-5, -1, 3), "method.weight", "λ")
    assert count(weights) == (1, 1, 3, "λ 1 of 3")
    assert count(Axis("settings", (-5, 3), "method.weight")) == (0, 1, 2, "0 of 2 (1 recorded)")
    assert count(tasks, arms=("CosReg",))[:3] == (1, 3, 4), "of the arms that the counterpart draws"
    assert count(Axis("models", ("bert",), "nosuch"))[:3] == (0, 0, 1)


def test_a_weight_or_a_task_of_another_method_is_none_of_the_items():
    axes = (Axis("settings", (-1, 1), "method.weight"), Axis("tasks", ("sst2", "rte"), "task"))
    page = study(task=["rte", "sst2", "rte"], **{"method.weight": [None, -1.0, 1.0]})
    item = Item("001", "Figure 3", "", "", "", axes, "page", "page", treatment=Treatment("istar", ("sst2",)))
    assert [str(found) for found in coverage.counted(item, {"page": page})] == ["1 of 2", "1 of 2"]


def test_plain_training_stands_for_a_value_where_the_axis_says_so():
    page = study(task=["rte"] * 3, **{"method.zeta": [None, 0.4, None]})
    item = Item("001", "Figure 7", "", "", "", (), "page", "page", treatment=Treatment("istar", ("rte",)))
    for plain, text in ((None, "1 of 2"), (1, "2 of 2")):
        zetas = Axis("settings", (0.4, 1), "method.zeta", plain=plain)
        assert str(coverage.counted(replace(item, axes=(zetas,)), {"page": page})[0]) == text
    page.runs = page.runs[1:]  # without plain training
    assert str(coverage.counted(replace(item, axes=(zetas,)), {"page": page})[0]) == "1 of 2"


def test_what_is_recorded_has_the_treatment_and_what_is_drawn_may_be_of_two_studies():
    tasks, own = Axis("tasks", ("sst2", "qnli"), "task"), Design("own", "", (), dict.get)
    pool = study(task=["qnli", "sst2", "rte"])
    studies = {"page": study(task=["rte"] * 3), "pool": pool, "own": study(task=["cola", "sst2", "rte"])}
    istar = Item("001", "Table 2", "", "", "", (tasks,), "page", "pool", treatment=Treatment("istar", ("qnli", "sst2")))
    assert str(coverage.counted(istar, studies)[0]) == "0 of 2 (1 recorded)"
    assert str(coverage.counted(replace(istar, own=own), studies)[0]) == "1 of 2"
    nothing = SimpleNamespace(runs=pd.DataFrame(columns=["run_id", "task", "arm"]), series=pd.DataFrame())
    weights = replace(istar, own=own, axes=(Axis("settings", (1,), "method.weight"),))
    assert str(coverage.counted(weights, studies | {"own": nothing, "page": pool})[0]) == "0 of 1"
    many = pd.DataFrame([("c", k) for k in range(9)], columns=["run_id", "step"]).assign(name="layer.end.x", value=0.0)
    studies["own"].series = many  # beside two lines of four points on the page
    points = replace(istar, own=own, axes=(Axis("points", (12,), "layer.end.x"),))
    assert str(coverage.counted(points, studies)[0]) == "9 of 12"
    updates = replace(istar, own=own, axes=(Axis("steps", (12,), "layer.end.x"),))
    assert str(coverage.counted(updates, studies)[0]) == "8 of 12", "the last step, however many are logged before it"
    many["step"] *= 5
    assert str(coverage.counted(updates, studies)[0]) == "12 of 12"


def test_an_item_shows_what_stands_on_its_page_and_is_priced_by_all_its_arms():
    """By the grids: of each arm five seeds a task, of I-STAR's single layers three, and plain runs trained alike."""
    items = {(coverage.NAMES[item.paper], item.item): item for item in ITEMS}
    nothing = {"trained_runs": SimpleNamespace(runs=pd.DataFrame({"run_id": []}))}
    planned = {name: coverage.missing(items[name], nothing).runs for name in items if items[name].treatment}
    assert planned["Shrink", "Table 2"] == 2 * 3 * 5
    assert planned["SoftDecay", "Table 2"] == 5 * 2 * 5
    assert planned["IsoLayer", "Table 2"] == 3 * 2 * 5
    assert planned["IsoLayer", "Table 3"] == 3 * 4 * 5, "IsoBN and its plain runs stand behind a pooler"
    assert planned["I-STAR", "Figure 8"] == 6 * 3 + 5, "on CoLA alone"
    page = study(task=["qqp"] * 3)
    (tasks, *_) = coverage.counted(items["SoftDecay", "Table 3"], {"printed_tables": page, "trained_runs": page})
    assert str(tasks) == "0 of 8", "I-STAR's run on QQP is none of SoftDecay's"
    suites = study(task=["rte", "sst2", "rte"], suite=["RTE", "SST-2", "RTE"])
    tasks = Axis("tasks", ("rte", "sst2"), "task")
    some = Item("001", "Table 2", "", "", "", (tasks,), "page", "page", suites=lambda study: ["RTE"])
    assert str(coverage.counted(some, {"page": suites})[0]) == "1 of 2 (2 recorded)"


def test_what_another_encoder_would_change_is_no_lack():
    layers = Axis("points", (12,), "layer.end.x", of_encoder=True)
    results = [coverage.Counted(layers, 4, 4, 12), coverage.Counted(Axis("tasks", ("a",), "task"), 1, 1, 1)]
    assert coverage.extent(results) == "whole"
    for shown, extent in ((1, "part"), (0, "none")):
        assert coverage.extent([*results, coverage.Counted(Axis("tasks", ("a", "b"), "task"), shown, 2, 2)]) == extent


def test_the_input_of_the_first_layer_is_no_layer():
    """Runs of the page have the steps 0 to 3: three layers above the embeddings."""
    layers = Axis("points", (12,), "layer.end.x", "layers", of_encoder=True)
    assert count(layers) == (3, 3, 12, "layers 3 of 12")


def test_points_are_those_of_a_line():
    assert count(Axis("points", (12,), "layer.end.x", "layers")) == (4, 4, 12, "layers 4 of 12")
    assert count(Axis("points", (3,), "layer.end.x"))[:3] == (3, 3, 3)
    assert count(Axis("points", (3,), "layer.end.y"))[:3] == (0, 0, 3)


def test_every_table_and_figure_is_declared_once():
    assert len({(item.paper, item.item) for item in ITEMS}) == len(ITEMS) == 28
    for item in ITEMS:
        assert item.kind != "runs" or {axis.name for axis in item.axes} >= {"tasks", "models"}, item


def test_at_most_three_items_are_shown_in_part_and_none_is_missing(studies):
    """As the ledger counts them: what another encoder would change is no lack."""
    own = {item.own.name: load_study(item.own) for item in ITEMS if item.own}
    found = {f"{item.paper} {item.item}": coverage.extent(coverage.counted(item, studies | own)) for item in ITEMS}
    assert [name for name, shown in found.items() if shown == "none"] == []
    part = [name for name, shown in found.items() if shown == "part"]
    assert len(part) <= 3, part


@pytest.mark.parametrize("item", DRAWN, ids=lambda item: f"{item.paper} {item.item}")
def test_each_counterpart_has_its_caption_in_the_chapter_that_is_named(item):
    chapter = (BOOK / f"{item.page}.md").read_text(encoding="utf-8").replace("''", "'")
    text = " ".join(re.sub(r'"\n\s*f?"', "", chapter).split())  # a long string over several lines is one again
    assert item.caption.replace("’", "'") in text


@pytest.mark.browser  # which runs after the book is built
@pytest.mark.parametrize("item", DRAWN, ids=lambda item: f"{item.paper} {item.item}")
def test_each_counterpart_stands_on_the_page_that_is_named(item):
    path = HTML / f"{item.page}.html"
    if not path.exists():
        pytest.skip("run `make book` first")
    text = re.sub(r"<[^>]+>", " ", path.read_text(encoding="utf-8")).replace("&gt;", ">")
    assert item.caption in " ".join(text.split())
