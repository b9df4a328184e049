"""The table of sizes against the tasks themselves."""

import pytest

from isonb.lab.data.rows import load_task
from isonb.lab.data.sizes import _sizes, task_size
from isonb.lab.data.tasks import TASKS
from isonb.lab.encoders.locate import find


@pytest.mark.parametrize("task", [name for name in TASKS if name.startswith("english")])
def test_sizes_in_the_table_are_the_tasks(task):
    size, splits = task_size(task), TASKS[task].splits
    assert len(load_task(task, split=splits[0])) == (size.train or size.evaluation)
    if size.train:
        assert len(load_task(task, split="validation")) == size.evaluation
    rows = load_task(task, split=splits[0], limit=200)
    texts = [list(rows[column]) for column in TASKS[task].inputs]
    texts = [texts[0] + texts[1]] if TASKS[task].kind == "similarity" else texts
    lengths = [len(ids) for ids in find("minilm").tokenizer(*texts)["input_ids"]]
    assert size.tokens == pytest.approx(sum(lengths) / len(lengths), rel=0.1)


def test_every_task_has_a_size():
    assert set(_sizes()) == set(TASKS)
