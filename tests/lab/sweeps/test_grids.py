"""Grids are data: what they mean, and every mistake told with its place."""

import pytest

from isonb_lab.places import EXPERIMENTS_FOLDER
from isonb_lab.sweeps import grids
from isonb_lab.sweeps.grids import GridError, about_grid, load_grid


@pytest.fixture
def grid(tmp_path):
    def write(text):
        (tmp_path / "grid.yaml").write_text(text, encoding="utf-8")
        return tmp_path / "grid.yaml"

    return write


def test_a_block_is_the_product_of_its_lists(grid):
    path = grid("""
about: |
  two tasks,
  three methods
smoke:
  - task: [english_sentiment, english_acceptability]
    method: [none, {name: istar, weight: [-1, 1.0]}]
    seed: [0, 1]
  - {task: english_sts, method: {name: whitening}}
small: {task: english_sentiment, learning_rate: 1e-4}
""")
    runs = load_grid(path, "smoke")
    assert len(runs) == 2 * 3 * 2 + 1
    assert [(r.config["seed"], r.config["method"].get("weight")) for r in runs[:6]] == [
        *((0, None), (1, None), (0, -1.0), (1, -1.0), (0, 1.0), (1, 1.0))
    ]
    assert runs[-1].config["experiment"] == "similarity"
    assert len({run.run_id for run in runs}) == len(runs)
    assert load_grid(path, "small")[0].config["learning_rate"] == 1e-4
    assert about_grid(path) == "two tasks, three methods"


def test_the_size_names_the_protocol_unless_a_block_does(grid):
    path = grid("""
smoke: [&base {task: english_sentiment}, {<<: *base, protocol: small}]
full: {task: english_sentiment}
paper: {task: english_sentiment}
""")
    assert [run.config["train_examples"] for run in load_grid(path, "smoke")] == [64, 2000]
    assert load_grid(path, "full")[0].config["train_examples"] is None
    assert load_grid(path, "paper")[0].config["learning_rate"] == 1e-3, "that of the model"


def test_runs_that_come_up_twice_are_one(grid):
    path = grid("""
smoke:
  - {task: english_sentiment, seed: [0, 1, 1]}
  - {task: english_sentiment, seed: "1", method: none, learning_rate: 5e-5, experiment: finetune}
""")
    assert [run.config["seed"] for run in load_grid(path, "smoke")] == [0, 1]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("smoke: [1]", r"smoke, block 1 must be a mapping.*got 1"),
        ("smoke:\n  - task: english_sentiment\n  - task: nope", "smoke, block 2: the task must be"),
        ("smoke: {task: english_sentiment, seed: []}", "seed of .*block 1 must have at least one value"),
        ("smoke: {task: english_sentiment, seed: [[0]]}", "seed of .*must be text, a number"),
        ("smoke: {1: 2}", "keys of .*must be names"),
        ("smoke: {task: a, task: b}", "key 'task' stands twice"),
        ("tiny: {task: english_sentiment}", "must have blocks under smoke"),
        ("smoke: {task: english_sentiment}\nabout: [1]", "about must be text"),
        ("smoke: {task: [", "line 1"),
        ("", "must have blocks"),
        ("smoke: !!python/object/apply:os.system ['true']", "python/object/apply"),
        ("smoke: {task: 2024-13-45}", "readable YAML file"),
        ("smoke: {task: english_sentiment, methods: [{name: none}]}", "Did you mean 'method'"),
    ],
)
def test_mistakes_are_told_with_their_place(grid, text, phrase):
    with pytest.raises(GridError, match=phrase):
        load_grid(grid(text), "smoke")


def test_a_grid_of_isonb_is_found_by_its_name_and_a_file_comes_first(here):
    assert load_grid("istar", "smoke") == load_grid(EXPERIMENTS_FOLDER / "istar.yaml", "smoke")
    (here / "istar").write_text("smoke: {task: english_sentiment}", encoding="utf-8")
    assert len(load_grid("istar", "smoke")) == 1


def test_files_and_sizes_that_are_not_there(grid, tmp_path):
    with pytest.raises(GridError, match=r"no file .*none\.yaml.*istar_search"):
        load_grid(tmp_path / "none.yaml", "smoke")
    with pytest.raises(GridError, match=r"got 'about'\. It has: smoke"):
        load_grid(grid("smoke: {task: english_sentiment}\nabout: x"), "about")


def test_blocks_share_one_limit(grid, monkeypatch):
    monkeypatch.setattr(grids, "plan", lambda inputs: pytest.fail("a run was written out"))
    block = f"{{task: english_sentiment, seed: {list(range(160))}, epochs: {list(range(1, 101))}}}"
    with pytest.raises(GridError, match="must name at most 20000 runs; got more"):
        load_grid(grid("smoke:\n" + f"  - &a {block}\n" + 4 * "  - *a\n"), "smoke")
