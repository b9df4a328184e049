"""bfloat16 where the processor has it, float32 elsewhere: what runs compute in, and what they say of it."""

from __future__ import annotations

import pytest
import torch

from isonb.lab.engines.experiment import run
from isonb.lab.pretraining import PretrainSettings
from isonb.lab.runs import arithmetic
from isonb.lab.runs.arithmetic import bfloat16_pays
from isonb.lab.runs.manifest import hardware

RUN = {"task": "english_sentiment", "model": "tiny", "protocol": "smoke", "method": "none", "precision": "bfloat16"}


@pytest.fixture(params=[False, True])
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(arithmetic, "_processor", lambda: request.param)
    return bool(request.param)


def test_accelerators_always_the_processor_if_it_can(processor: bool) -> None:
    assert bfloat16_pays("cuda")
    assert bfloat16_pays("mps")
    assert bfloat16_pays("cpu") is processor
    assert PretrainSettings().half is processor
    assert PretrainSettings(bfloat16=False).half is False
    assert torch.cuda.is_available() or hardware()["bfloat16"] is processor


def test_a_run_computes_in_what_the_processor_has(processor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    plain = torch.nn.functional.cross_entropy

    def watched(*args: object, **kwargs: object) -> torch.Tensor:
        seen.add(torch.is_autocast_enabled("cpu"))
        return plain(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(torch.nn.functional, "cross_entropy", watched)
    record = run(RUN | {"train_examples": 16, "eval_examples": 8, "max_steps": 2, "batch_size": 8, "seed": 0})
    assert record.config["precision"] == "bfloat16"
    assert seen == {processor}
    assert record.manifest["hardware"]["bfloat16"] is processor
