"""What goes along with a run: checkpoints that are whole, predictions from which scores follow, what trackers hear."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import accuracy_score
from transformers import Trainer, TrainerCallback
from transformers.integrations import integration_utils

from isonb.errors import OptionError
from isonb_lab.engines import callbacks, finetune
from isonb_lab.engines.callbacks import Bar, last_valid_checkpoint, seal
from isonb_lab.engines.experiment import run
from isonb_lab.runs.settings import plan
from isonb_lab.runtime.progress import read_progress
from isonb_lab.sweeps.execution import ExecuteError, prepare

TUNED = {"task": "english_sentiment", "model": "tiny", "protocol": "smoke", "max_steps": 2}
PAIRS = {"task": "english_sts", "model": "tiny", "protocol": "smoke", "method": {"name": "simcse", "steps": 2}}
CUT = TUNED | {"train_examples": 40, "eval_examples": 24, "cloud_examples": 0, "precision": "float32"}
CUT |= {"method": {"name": "istar", "weight": -1.0}, "epochs": 3, "max_steps": 6}
PATIENT = CUT | {"method": "none", "holdout": 0.2, "batch_size": 8, "patience": 3, "epochs": 8, "learning_rate": 0.0}
PATIENT |= {"max_steps": None}
LATE = PATIENT | {"method": {"name": "istar", "weight": -1.0, "after": 1}, "learning_rate": 1e-3, "epochs": 2}
LATE |= {"validations": 4, "track_every": 1, "patience": 9}


def stop(config, work, at):
    """A run that is stopped after so many updates; None: after the last one, before its record."""

    def interrupt(self, args, state=None, *rest, **kwargs):
        if at is None or state.global_step == at:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(*((Trainer, "predict") if at is None else (Bar, "on_step_end")), interrupt)
        with pytest.raises(KeyboardInterrupt):
            finetune.run(config, work=work, progress=False)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was stopped in its third epoch: its folder, and its record when undisturbed."""
    work = tmp_path_factory.mktemp("stopped") / "work"
    stop(CUT, work, 5)
    return work, finetune.run(CUT, progress=False)


@pytest.mark.parametrize("damage", ["none", "rng_state.pth"])
def test_a_stopped_run_goes_on_from_its_last_epoch_and_never_from_a_damaged_checkpoint(stopped, tmp_path, damage):
    before, whole = stopped
    shutil.copytree(before, tmp_path / "work")
    assert [path.name for path in (tmp_path / "work").glob("checkpoint-*")] == ["checkpoint-4"]
    file = tmp_path / "work/checkpoint-4" / damage
    if damage != "none":
        file.write_bytes(file.read_bytes()[:-9] + b"\0" * 9)
    again = finetune.run(CUT, work=tmp_path / "work", progress=False)
    assert read_progress(tmp_path / "work")[0] == 6
    assert (again.metrics, again.series) == (whole.metrics, whole.series)


@pytest.mark.parametrize(
    ("config", "at", "validations"),
    [
        (PATIENT, 14, [4, 8, 12, 16]),  # it has waited two validations of three
        (PATIENT, None, [4, 8, 12, 16]),
        (CUT | {"max_steps": 5}, None, [2, 4, 5]),  # all updates done in the middle of an epoch
        (LATE, 4, [1, 2, 3, 4, 5, 6, 7, 8]),  # three quarters of the epoch without a penalty
    ],
    ids=["waiting", "stopped early", "all updates", "late penalty"],
)
def test_a_stopped_run_ends_as_if_undisturbed(config, at, validations, tmp_path):
    stop(config, tmp_path, at)
    assert list(tmp_path.glob("checkpoint-*"))
    again, whole = finetune.run(config, work=tmp_path, progress=False), finetune.run(config, progress=False)
    assert [step for step, _ in again.series["step.validation.loss"]] == validations
    assert (again.metrics, again.series) == (whole.metrics, whole.series)


def test_a_stopped_run_of_other_rows_begins_anew(here):
    """The labels of the file were turned, which no setting tells."""
    config = {name: value for name, value in CUT.items() if name not in ("train_examples", "eval_examples")}
    config |= {"task": "reviews.csv", "method": "none"}
    rows = pd.DataFrame({"text": [f"a {word} film of {n}" for n in range(20) for word in ("good", "bad")]})
    rows.assign(label=["good", "bad"] * 20).to_csv("reviews.csv", index=False)
    stop(config, "work", 5)
    (note,) = Path("work").glob("checkpoint-*/inputs.json")
    old = json.loads(note.read_text())
    rows.assign(label=["bad", "good"] * 20).to_csv("reviews.csv", index=False)
    again, fresh = finetune.run(config, work="work", progress=False), finetune.run(config, progress=False)
    assert again.run_id == plan(config).run_id
    assert old["train"] != again.manifest["data"]["train"] == fresh.manifest["data"]["train"]
    assert (again.metrics, again.series) == (fresh.metrics, fresh.series)


def checkpoint(folder, updates, best=None, inputs=None):
    """A sealed one, of made-up files."""
    result = folder / f"checkpoint-{updates}"
    result.mkdir()
    (result / "model.safetensors").write_bytes(bytes(updates))
    state = {"best_model_checkpoint": None if best is None else str(folder / f"checkpoint-{best}")}
    (result / "trainer_state.json").write_text(json.dumps(state))
    seal(result, inputs)
    return result / "model.safetensors"


def test_the_last_whole_one_is_taken_with_its_best_and_later_ones_go(tmp_path):
    assert last_valid_checkpoint(tmp_path) is None
    files = [checkpoint(tmp_path, updates, best=9) for updates in (9, 10, 11)]
    files[2].write_bytes(b"")
    assert last_valid_checkpoint(tmp_path) == tmp_path / "checkpoint-10"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-10", "checkpoint-9"]
    files[0].write_bytes(b"")
    assert last_valid_checkpoint(tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_one_of_other_rows_goes_and_one_that_does_not_say_stays(tmp_path):
    checkpoint(tmp_path, 9)  # of a release that didn't note what was read
    checkpoint(tmp_path, 10, inputs={"train": "ab"})
    assert last_valid_checkpoint(tmp_path, {"train": "ab"}) == tmp_path / "checkpoint-10"
    assert last_valid_checkpoint(tmp_path, {"train": "cd"}) == tmp_path / "checkpoint-9"
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-9"]


@pytest.fixture
def tracker(monkeypatch):
    """What a tracker that transformers knows by name is told."""
    events = []

    class Listener(TrainerCallback):
        def on_train_begin(self, args, state, control, **kwargs):
            events.append(("begin", args.run_name))

        def on_log(self, args, state, control, logs=None, **kwargs):
            events.append((state.global_step, dict(logs)))

        def on_train_end(self, args, state, control, **kwargs):
            events.append(("end", None))

    monkeypatch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "dvclive", Listener)
    monkeypatch.setattr(callbacks, "get_available_reporting_integrations", lambda: ["dvclive"])
    return events


@pytest.mark.parametrize(
    ("config", "file"), [(TUNED, "p.csv"), (TUNED | {"method": "whitening"}, "p.parquet"), (PAIRS, "p.parquet")]
)
def test_scores_follow_from_the_predictions_and_trackers_are_told(config, file, tracker, tmp_path):
    record = run(config, progress=False, report_to="dvclive", predictions=tmp_path / file)
    table = (pd.read_csv if file.endswith("csv") else pd.read_parquet)(tmp_path / file)
    if config is PAIRS:
        score = 100 * spearmanr(table["predicted"], table["gold"]).statistic
        assert score == pytest.approx(record.metrics["spearman.all"], abs=0.01)
        assert len(table) == record.metrics["pairs"]
    else:
        assert accuracy_score(table["gold"], table["predicted"]) == record.metrics["accuracy"]
        assert (table["predicted"] == table[["logit.0", "logit.1"]].to_numpy().argmax(1)).all()
    assert any(name.startswith("text.") for name in table)
    assert (tracker[0], tracker[-1]) == (("begin", record.run_id), ("end", None))
    assert any("loss" in logs for _, logs in tracker[1:-1])
    assert tracker[-2][1] == {f"final_{name}": value for name, value in record.metrics.items() if value is not None}


def test_what_can_not_be_kept_is_refused_before_a_run(tmp_path, tracker):
    with pytest.raises(OptionError, match=r"a tracker must be installed; got report_to mlflow\. pip install mlflow"):
        run(TUNED, report_to="mlflow")
    with pytest.raises(OptionError, match=r"report_to must be among .*tensorboard.*; got paper"):
        run(TUNED, report_to="dvclive,paper")
    with pytest.raises(ExecuteError, match="are for finetune and similarity runs; got a synthetic run"):
        prepare(plan({"experiment": "synthetic"}), tmp_path, keep_predictions=True)
