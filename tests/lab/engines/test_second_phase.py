"""The second phase: what it copies, what it trains, which state it ends with; and by hand what a run gives."""

import pytest
import torch
from torch import nn

from isonb import OptionError
from isonb.models.loading import load_for_training
from isonb_lab.data.task import TaskError
from isonb_lab.encoders.task_model import TaskModel
from isonb_lab.engines import second_phase
from isonb_lab.engines.finetune import run
from isonb_lab.engines.preflight import preflight
from isonb_lab.engines.second_phase import Features, SecondModel, fit_second
from isonb_lab.methods import SecondPhase, method_from
from isonb_lab.papers import live
from isonb_lab.runs.settings import plan
from tests.lab.random_models import save


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    encoder = load_for_training(save("bert", tmp_path_factory.mktemp("models") / "bert"), dropout=0.0)
    return TaskModel(encoder.model, "classification", 2, method_from("none"), "pooler", 0.0).eval()


def test_the_head_is_a_copy_and_the_encoder_is_not_copied(tuned, monkeypatch):
    def refuse(memo):
        raise AssertionError("the encoder was copied")

    monkeypatch.setattr(tuned.encoder, "__deepcopy__", refuse, raising=False)
    dim = tuned.config.hidden_size
    model = SecondModel(tuned, SecondPhase(nn.Identity(), head="tuned"), dim, 2)
    rows = torch.randn(5, dim, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(rows, None)[0], tuned.head(rows))
    assert not {id(p) for p in model.parameters()} & {id(p) for p in tuned.parameters()}
    assert sum(p.numel() for p in model.parameters()) == dim * dim + dim + 2 * dim + 2
    assert hasattr(tuned, "encoder")


def test_the_best_state_is_put_back_and_the_score_sees_no_training_mode(tuned):
    dim = tuned.config.hidden_size
    module = nn.Sequential(nn.Linear(dim, dim), nn.Dropout(0.5))
    phase = SecondPhase(module, head="frozen", epochs=5, patience=2, batch_size=8)
    model = SecondModel(tuned, phase, dim, 2)
    draw = torch.Generator().manual_seed(0)
    rows = Features(torch.randn(16, dim, generator=draw), torch.randint(2, (16,), generator=draw))
    states, scores = [], iter([0.1, 0.9, 0.5, 0.3, 1.0])

    def score(model):
        model.logits(rows)
        assert model.module.training  # as it was, for the next epoch
        states.append(module[0].weight.detach().clone())
        return {"accuracy": next(scores)}

    series = fit_second(model, phase, rows, score, seed=0, select=True, progress=False)
    assert len(states) == 4  # two epochs without a better one
    assert torch.equal(module[0].weight, states[1])
    assert not module.training
    assert series["step.second.accuracy"] == [(2, 0.1), (4, 0.9), (6, 0.5), (8, 0.3)]
    assert [step for step, _ in series["step.second.loss"]] == list(range(1, 9))


CONFIG = {"task": "english_sentiment", "model": "tiny", "protocol": "smoke", "precision": "float32", "head": "linear"}
CONFIG |= {"track_every": 0, "cloud_examples": 48}
LAYER = {"name": "isolayer", "epochs": 2, "batch_size": 32}


@pytest.fixture(scope="module")
def remaining():
    return live.fine_tune(CONFIG)


def test_answers_that_are_no_classes_are_refused():
    with pytest.raises(TaskError, match=r"one of classification; got english_similarity \(regression\)"):
        live.fine_tune(CONFIG | {"task": "english_similarity"})


def test_a_live_run_has_windows_that_a_context_fits_and_refuses_what_is_not_learned(monkeypatch):
    monkeypatch.setattr(live, "run_all", list)
    (span,) = live.small_runs(["none"], seeds=[0], task="english_span", model="tiny")
    assert preflight(plan(span)).checked
    (pairs,) = live.small_runs(["none"], seeds=[0], task="english_sts", model="tiny")
    with pytest.raises(OptionError, match=r"a finetune run needs a task of its kind; got english_sts \(similarity\)"):
        plan(pairs)


def test_two_phases_by_hand_give_what_a_run_gives(remaining):
    record = run(CONFIG | {"method": LAYER}, progress=False)
    result = remaining.layered(LAYER).measured()
    assert result["after.score"] == pytest.approx(record.metrics["accuracy"])
    assert result["before.score"] == pytest.approx(record.metrics["first_phase.accuracy"])
    for name in ("isoscore", "explained_variance_1"):
        assert result[f"after.{name}"] == pytest.approx(record.metrics[f"end.second.{name}"], rel=1e-3)


@pytest.mark.parametrize("method", [{"name": "isolayer", "epochs": 50}, "whitening", "zero_mean"])
def test_training_that_ends_while_its_score_still_rises_says_so_in_the_record(method, monkeypatch):
    """Also of a new head behind a transform, whose passes no option sets; a patience that ran out is an end."""
    curves = {"rising": [place / 100 for place in range(50)], "flat": [0.5] * 50, "stopped": [0.5, *[0.4] * 5]}
    warned = {}
    for name, curve in curves.items():
        series = {"step.second.accuracy": list(enumerate(curve))}
        monkeypatch.setattr(second_phase, "fit_second", lambda *_, series=series, **more: dict(series))
        texts = run(CONFIG | {"method": method}, progress=False).manifest.get("warnings", [])
        warned[name] = [text for text in texts if text.startswith("second phase: accuracy still rose when training")]
    assert [len(texts) for texts in warned.values()] == [1, 0, 0]
    assert "after 50 passes" in warned["rising"][0]


def test_a_module_that_needs_no_training_changes_nothing_but_itself(remaining):
    layer = remaining.layered(LAYER, trained=False, module=torch.nn.Identity())
    result = layer.measured()
    assert layer.series == {}
    assert result["changed"] == 0
    assert result["after.isoscore"] == result["before.isoscore"]
