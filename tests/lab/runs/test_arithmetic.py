"""bfloat16 where the processor has it, float32 elsewhere: what runs compute in, and what they say of it."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from isonb.lab.engines.experiment import run
from isonb.lab.runs import arithmetic
from isonb.lab.runs.arithmetic import bfloat16_pays, mixed_processors, processor_kinds
from isonb.lab.runs.manifest import hardware
from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import resolve
from isonb.lab.runs.table import table

RUN = {"task": "english_sentiment", "model": "tiny", "protocol": "smoke", "method": "none", "precision": "bfloat16"}


@pytest.fixture(params=[False, True])
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(arithmetic, "_processor", lambda: request.param)
    return bool(request.param)


def test_accelerators_always_the_processor_if_it_can(processor: bool) -> None:
    assert bfloat16_pays("cuda")
    assert bfloat16_pays("mps")
    assert bfloat16_pays("cpu") is processor
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


def runs_of(*hardware: dict[str, object]) -> pd.DataFrame:
    """The table of one run a given hardware, as records become one."""
    config = {"task": "english_sentiment", "protocol": "smoke"}
    return table(
        Record(resolve(config | {"seed": seed}), {"accuracy": 0.5}, manifest={"hardware": found} if found else {})
        for seed, found in enumerate(hardware)
    )


EPYC: dict[str, object] = {"cpu": "AMD EPYC", "bfloat16": True, "gpus": [], "machine": "x86_64"}


def test_runs_of_one_kind_of_processor_need_no_word() -> None:
    assert mixed_processors(runs_of()) == ""
    assert mixed_processors(runs_of({}, {})) == ""
    assert mixed_processors(runs_of(EPYC, EPYC | {"cores": 64, "memory_gib": 3.0})) == ""
    assert processor_kinds(runs_of(EPYC)).tolist() == ["AMD EPYC with bfloat16"]
    gpu = EPYC | {"gpus": ["NVIDIA A100", "NVIDIA A100"]}
    assert processor_kinds(runs_of(gpu, gpu | {"cpu": "Xeon"})).tolist() == ["NVIDIA A100"] * 2


def test_runs_of_several_kinds_of_processor_are_told_with_their_counts() -> None:
    runs = runs_of(EPYC, EPYC | {"bfloat16": False}, EPYC | {"gpus": ["NVIDIA A100"]}, {}, EPYC)
    kinds = {"AMD EPYC": 1, "AMD EPYC with bfloat16": 2, "NVIDIA A100": 1, "not recorded": 1}
    assert processor_kinds(runs).value_counts().to_dict() == kinds
    told = mixed_processors(runs)
    assert "5 runs are from 4 kinds of processor" in told
    assert all(f"{kind} ({count})" in told for kind, count in kinds.items())
