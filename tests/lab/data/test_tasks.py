"""The tasks and their loader: what each promises, and what it refuses before reading."""

import pytest
from cola import save_cola, write_rows

from isonb.models.locate import find
from isonb.runtime.tables import SourceError
from isonb_lab.data import scores, sources, tasks
from isonb_lab.data.rows import load_task
from isonb_lab.data.sources import fingerprint, split_files
from isonb_lab.data.tasks import TASKS, TaskError, task_named
from isonb_lab.engines.preflight import preflight
from isonb_lab.runs.settings import plan


def rows_of(task):
    """Valid rows of a task, with one column too many and the columns in another order."""
    target = {
        "classification": lambda i: i % max(1, len(task.labels)),
        "regression": lambda i: i / 2,
        "similarity": lambda i: i / 2,
        "span": lambda i: {"text": [f"answer {i}"], "answer_start": [0]},
    }[task.kind]
    subsets = task.subsets or ("MSRvid",)
    return [
        {"idx": i, task.target: target(i), "subset": subsets[i % len(subsets)], "id": f"q{i}"}
        | {column: f"{column} {i}" for column in reversed(task.inputs)}
        for i in range(6)
    ]


GENERATED = sorted(tasks.GENERATED)


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.hub and not task.parts])
def test_each_task_is_whole_loads_and_is_scored(name, tmp_path):
    task = TASKS[name]
    assert (task.outputs > 1) == (task.kind in ("classification", "span"))
    for split in task.splits:
        write_rows(tmp_path / task.folder / f"{split}.parquet", rows_of(task))
        got = load_task(name, tmp_path, split=split)
        assert got.column_names == list(task.columns)
        assert len(got) == 6
        assert got[5][task.inputs[0]] == f"{task.inputs[0]} 5"
        assert got[3][task.target] == rows_of(task)[3][task.target]
        if task.labels:
            assert got.features["label"].names == list(task.labels)
        check_gold_scores_one(task, got[task.target][:])


def check_gold_scores_one(task, gold):
    """Gold answers given back score 1 in every metric."""
    references = [row["text"] for row in gold] if task.kind == "span" else gold
    predicted = [refs[0] for refs in references] if task.kind == "span" else gold
    assert scores.score(task.metrics, predicted, references) == pytest.approx(dict.fromkeys(task.metrics, 1.0))


def test_unknown_task_names_the_nearest_and_all():
    with pytest.raises(TaskError, match=r"got 'coal'\. Did you mean 'cola'\? Tasks: cola, sst2, .*, sickr, english_"):
        load_task("coal", "/no/such/folder")
    with pytest.raises(TaskError, match=r"Did you mean 'mrpc'"):
        load_task("MRPC")


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"split": "test"}, r"split of cola must be one of train, validation; got 'test'.*not public"),
        ({"limit": 0}, "limit must be an integer of at least 1"),
        ({"seed": "1"}, "seed must be an integer"),
    ],
)
def test_bad_requests_read_nothing(expected, message, monkeypatch):
    for reader in ("read_folder", "read_hub", "data_folder"):
        monkeypatch.setattr(sources, reader, lambda *_, **__: pytest.fail("read"))
    with pytest.raises(TaskError, match=message):
        load_task("cola", **expected)


@pytest.mark.parametrize(
    ("task", "values", "message"),
    [
        ("cola", None, "cola, split 'train' must have rows; got none"),
        ("cola", {"sentence": None}, "sentence must have a value in each row; got none in row 2"),
        ("cola", {"label": 2}, r"must lie in 0\.\.1; got 0\.\.2\. Number the labels 0 unacceptable, 1 acc"),
        ("stsb", {"label": float("nan")}, "label must be finite"),
        ("squad", {"answers": {"text": [], "answer_start": []}}, "must have an answer"),
    ],
)
def test_bad_files(task, values, message, tmp_path):
    rows = [] if values is None else rows_of(TASKS[task])
    rows[2:3] = [row | values for row in rows[2:3]]
    write_rows(tmp_path / TASKS[task].folder / "train.parquet", rows)
    with pytest.raises(SourceError, match=message):
        load_task(task, tmp_path)


def test_limit_draws_a_fixed_nested_sample(tmp_path):
    save_cola(tmp_path, 100)
    few, more, again, other, every = (
        load_task("cola", tmp_path, limit=limit, seed=seed)["sentence"][:]
        for limit, seed in ((5, 0), (20, 0), (20, 0), (20, 1), (1000, 0))
    )
    assert more == again != other
    assert set(few) < set(more)
    assert more == [text for text in every if text in more] != every[:20]
    assert len(every) == 100


@pytest.mark.parametrize("name", GENERATED)
def test_embedded_tasks_load_without_any_source(name, monkeypatch):
    monkeypatch.setenv("ISONB_DATA", "/no/such/folder")
    task = TASKS[name]
    rows = {split: load_task(name, split=split) for split in task.splits}
    assert {len(part) for part in rows.values()} <= {400, 2000}
    assert all(part.column_names == list(task.columns) for part in rows.values())
    last = task.splits[-1]
    assert fingerprint(load_task(name, split=last)) == fingerprint(rows[last])
    check_gold_scores_one(task, rows[last][task.target][:])


@pytest.mark.parametrize("name", GENERATED)
def test_sizes_in_the_table_are_the_tasks(name):
    task, size = TASKS[name], tasks.task_size(name)
    assert len(load_task(name, split=task.splits[0])) == (size.train or size.evaluation)
    rows = load_task(name, split=task.splits[0], limit=200)
    texts = [list(rows[column]) for column in task.inputs]
    texts = [texts[0] + texts[1]] if task.kind == "similarity" else texts
    lengths = [len(ids) for ids in find("minilm").tokenizer(*texts)["input_ids"]]
    assert size.tokens == pytest.approx(sum(lengths) / len(lengths), rel=0.1)


@pytest.fixture
def sst(tmp_path):
    """Two training rows, one validation row of SST-2; five test rows of SST-5, one of each label."""
    sst2 = [{"sentence": "good ", "label": 1}, {"sentence": "bad ", "label": 0}]
    sst5 = [{"text": text, "label": i} for i, text in enumerate(("awful", "poor", "so so", "fine", "great"))]
    for name, rows in (("glue/sst2/train", sst2), ("glue/sst2/validation", sst2[:1]), ("sst5/test", sst5)):
        write_rows(tmp_path / f"{name}.parquet", rows)
    return tmp_path


def test_sst2_is_judged_on_its_validation_set_and_the_test_sentences_that_are_not_neutral(sst):
    rows = load_task("sst2_joint", sst, split="validation")
    assert rows["sentence"] == ["good ", "awful", "poor", "fine", "great"]
    assert rows["label"] == [1, 0, 0, 1, 1]
    assert load_task("sst2_joint", sst)["sentence"] == load_task("sst2", sst)["sentence"]


def test_the_files_of_every_part_are_looked_for(sst):
    files = split_files(task_named("sst2_joint"), "validation", sst)
    assert [str(file.relative_to(sst)) for file in files] == ["glue/sst2/validation.parquet", "sst5/test.parquet"]
    (sst / "sst5/test.parquet").unlink()
    run = {"task": "sst2_joint", "model": "tiny", "method": "none", "protocol": "smoke"}
    with pytest.raises(SourceError, match=r"sst5/test\.parquet"):
        preflight(plan(run), sst)


def test_mnli_has_two_validation_sets(tmp_path):
    for split in ("train", "validation_matched", "validation_mismatched"):
        write_rows(tmp_path / f"glue/mnli/{split}.parquet", [{"premise": split, "hypothesis": "h", "label": 2}])
    for task, split in (("mnli", "validation_matched"), ("mnli_mm", "validation_mismatched")):
        assert load_task(task, tmp_path)["premise"] == ["train"]
        assert load_task(task, tmp_path, split="validation")["premise"] == [split]
