"""What a run leaves beside its record: predictions from which its scores follow, and what trackers were told."""

import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import accuracy_score
from transformers import TrainerCallback
from transformers.integrations import integration_utils

from isonb.lab.engines import reports
from isonb.lab.engines.experiment import run
from isonb.lab.options import OptionError
from isonb.lab.sweeps.execution import ExecuteError, prepare

TUNED = {"task": "english_sentiment", "model": "tiny", "protocol": "smoke", "max_steps": 4}
PAIRS = {"task": "english_sts", "model": "tiny", "protocol": "smoke", "method": {"name": "simcse", "steps": 2}}


class Told(TrainerCallback):
    """A tracker that keeps what it is told."""

    said: list = []  # noqa: RUF012

    def on_train_begin(self, args, state, control, **kwargs):
        self.said.append(("begin", args.run_name))

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.said.append((state.global_step, dict(logs)))

    def on_train_end(self, args, state, control, **kwargs):
        self.said.append(("end", None))


@pytest.fixture
def tracker(monkeypatch):
    """A tracker that transformers knows by name."""
    monkeypatch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "dvclive", Told)
    monkeypatch.setattr(reports, "get_available_reporting_integrations", lambda: ["dvclive"])
    monkeypatch.setattr(Told, "said", [])
    return Told.said


@pytest.mark.parametrize(
    ("config", "file", "logged"),
    [(TUNED, "p.csv", "loss"), (TUNED | {"method": "whitening"}, "p.parquet", "loss"), (PAIRS, "p.parquet", "loss")],
)
def test_scores_follow_from_the_predictions_and_trackers_are_told(config, file, logged, tracker, tmp_path):
    record = run(config, progress=False, report_to="dvclive", predictions=tmp_path / file)
    read = pd.read_csv if file.endswith("csv") else pd.read_parquet
    table = read(tmp_path / file)
    if config is PAIRS:
        assert 100 * spearmanr(table["predicted"], table["gold"]).statistic == pytest.approx(
            record.metrics["spearman.all"], abs=0.01
        )
        assert len(table) == record.metrics["pairs"]
    else:
        assert accuracy_score(table["gold"], table["predicted"]) == record.metrics["accuracy"]
        assert (table["predicted"] == table[["logit.0", "logit.1"]].to_numpy().argmax(1)).all()
    assert any(name.startswith("text.") for name in table)
    assert tracker[0] == ("begin", record.run_id)
    assert tracker[-1] == ("end", None)
    assert any(logged in logs for _, logs in tracker[1:-1])
    final = tracker[-2][1]
    assert final == {f"final_{name}": value for name, value in record.metrics.items() if value is not None}


def test_tensorboard_has_the_losses_and_the_final_scores(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path))
    record = run(TUNED, progress=False, report_to="tensorboard")
    said = EventAccumulator(str(tmp_path)).Reload()
    assert [event.step for event in said.Scalars("eval/accuracy")][-1] == 4
    (last,) = said.Scalars("train/final_accuracy")
    assert last.value == pytest.approx(record.metrics["accuracy"])


def test_what_can_not_be_kept_is_refused_before_a_run(tmp_path, tracker):
    with pytest.raises(OptionError, match=r"a tracker must be installed; got report_to mlflow\. pip install mlflow"):
        run(TUNED, report_to="mlflow")
    with pytest.raises(OptionError, match=r"report_to must be among .*tensorboard.*; got paper"):
        run(TUNED, report_to="dvclive,paper")
    with pytest.raises(ExecuteError, match="are for finetune and similarity runs; got a synthetic run"):
        prepare({"experiment": "synthetic"}, tmp_path, keep_predictions=True)
