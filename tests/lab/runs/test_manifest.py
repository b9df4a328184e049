"""What a number depends on: told without anything private, and what runs compute in on which processor."""

import contextlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
import torch

import isonb
import isonb_lab
from isonb_lab.engines.experiment import run
from isonb_lab.runs import manifest as manifests
from isonb_lab.runs.manifest import (
    Clock,
    code_version,
    manifest,
    mixed_processors,
    processor_kinds,
    sources_digest,
)
from isonb_lab.runs.record import Record
from isonb_lab.runs.settings import resolve
from isonb_lab.runs.table import table

RUN = {"task": "english_sentiment", "model": "tiny", "protocol": "smoke", "method": "none", "precision": "bfloat16"}


@pytest.mark.parametrize("able", [False, True])
def test_a_run_computes_in_what_the_processor_has(able, monkeypatch):
    names = set()
    plain = torch.nn.functional.cross_entropy

    def watched(*args, **kwargs):
        names.add(torch.is_autocast_enabled("cpu"))
        return plain(*args, **kwargs)

    monkeypatch.setattr(manifests, "_processor", lambda: able)
    monkeypatch.setattr(torch.nn.functional, "cross_entropy", watched)
    record = run(RUN | {"train_examples": 16, "eval_examples": 8, "max_steps": 1, "batch_size": 8, "seed": 0})
    assert record.config["precision"] == "bfloat16"
    assert names == {able}
    assert record.manifest["hardware"]["bfloat16"] is able


def runs_of(*hardware):
    """The table of one run a given hardware, as records become one."""
    config = {"task": "english_sentiment", "protocol": "smoke"}
    return table(
        Record(resolve(config | {"seed": seed}), {"accuracy": 0.5}, manifest={"hardware": result} if result else {})
        for seed, result in enumerate(hardware)
    )


EPYC = {"cpu": "AMD EPYC", "bfloat16": True, "gpus": [], "machine": "x86_64"}


def test_runs_of_one_kind_of_processor_need_no_word():
    gpu = EPYC | {"gpus": ["NVIDIA A100", "NVIDIA A100"]}
    for alike in ((), ({}, {}), (EPYC, EPYC | {"cores": 64}), (gpu, gpu | {"cpu": "Xeon"})):
        assert mixed_processors(runs_of(*alike)) == ""


def test_runs_of_several_kinds_of_processor_are_told_with_their_counts():
    runs = runs_of(EPYC, EPYC | {"bfloat16": False}, EPYC | {"gpus": ["NVIDIA A100"]}, {}, EPYC)
    kinds = {"AMD EPYC": 1, "AMD EPYC with bfloat16": 2, "NVIDIA A100": 1, "not recorded": 1}
    assert processor_kinds(runs).value_counts().to_dict() == kinds
    report = mixed_processors(runs)
    assert all(f"{kind} ({count})" in report for kind, count in kinds.items())


def test_manifest_says_what_counts_and_nothing_private():
    clock = Clock()
    time.sleep(0.01)
    result = manifest(seed=7, data={"train": "ab12", "rows": 3}, clock=clock)
    text = json.dumps(result)
    assert json.loads(text) == result
    assert 0.01 <= result["seconds"] < 5
    assert result["started"].endswith("+00:00")
    assert result["versions"]["torch"] == torch.__version__
    assert result["hardware"]["cores"] >= 1
    assert len(result["code"]["sha256"]) == 64
    private = {os.uname().nodename, str(Path.home()), str(Path(manifests.__file__).parent), sys.executable}
    assert not [word for word in private if len(word) > 2 and word in text]


def test_a_clock_adds_up_what_measuring_took():
    """Also where a measurement fails, and apart from the rest of the run."""
    clock = Clock()
    assert "measuring" not in manifest(seed=0, data="x", clock=clock)
    with clock.measuring():
        time.sleep(0.02)
    time.sleep(0.05)
    with contextlib.suppress(ZeroDivisionError), clock.measuring():
        time.sleep(0.02)
        _ = 1 / 0
    result = manifest(seed=0, data="x", clock=clock)
    assert 0.04 <= result["measuring"] < result["seconds"] - 0.04


def test_another_byte_of_an_engine_is_another_version_and_none_of_a_picture(tmp_path):
    """Of a copy elsewhere, whatever its line ends."""
    packages = [Path(package.__file__).parent for package in (isonb, isonb_lab)]
    for file in (file for package in packages for file in package.rglob("*.py")):
        place = tmp_path / file.relative_to(packages[packages[1] in file.parents].parent)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    now, copies = code_version()["sha256"], [tmp_path / package.name for package in packages]
    assert sources_digest(*copies) == now
    for name, counts in {
        "isonb/losses/istar.py": True,
        "isonb_lab/engines/trainer.py": True,
        "isonb_lab/data/tasks.py": True,
        "isonb_lab/figures/softdecay.py": False,
        "isonb_lab/pages/build.py": False,
    }.items():
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content.replace(b"\n", b"\r\n"))
        assert sources_digest(*copies) == now
        (tmp_path / name).write_bytes(content + b"#")
        assert (sources_digest(*copies) != now) is counts, name
        (tmp_path / name).write_bytes(content)
