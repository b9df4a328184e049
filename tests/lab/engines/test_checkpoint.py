"""A run goes on from a checkpoint that is whole, and from no other."""

import json
import shutil

import pytest

from isonb.lab.engines import finetune
from isonb.lab.engines.checkpoint import SEAL, _digests, last_whole
from isonb.lab.engines.trainer import Bar
from tests.lab.random_models import save

CONFIG = {
    "protocol": "smoke",
    "task": "english_acceptability",
    "train_examples": 40,
    "eval_examples": 24,
    "cloud_examples": 0,
    "precision": "float32",
    "method": "entropy",
    "epochs": 3,
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was stopped in its third epoch: its configuration, its folder, its record when undisturbed."""
    folder = tmp_path_factory.mktemp("stopped")
    config = CONFIG | {"model": str(save("bert", folder / "bert"))}

    def stop(self, args, state, control, **kwargs):
        if state.global_step == 5:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Bar, "on_step_end", stop)
        with pytest.raises(KeyboardInterrupt):
            finetune.run(config, work=folder / "work", progress=False)
    return config, folder / "work", finetune.run(config, progress=False)


def halved(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x40
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "damage"), [("model.safetensors", flipped), ("rng_state.pth", lambda path: path.unlink())]
)
def test_a_damaged_checkpoint_is_not_gone_on_from(stopped, tmp_path, name, damage):
    config, before, whole = stopped
    work = tmp_path / "work"
    shutil.copytree(before, work)
    damage(work / "checkpoint-4" / name)
    found = finetune.run(config, work=work, progress=False)
    assert (found.metrics, found.series) == (whole.metrics, whole.series)


def checkpoint(folder, updates, best=None):
    """A sealed one, of made-up files."""
    made = folder / f"checkpoint-{updates}"
    made.mkdir()
    (made / "model.safetensors").write_bytes(bytes(updates))
    state = {"best_model_checkpoint": None if best is None else str(folder / f"checkpoint-{best}")}
    (made / "trainer_state.json").write_text(json.dumps(state))
    (made / SEAL).write_text(json.dumps(_digests(made)))
    return made


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_last_whole_one_is_taken_and_later_ones_go(tmp_path):
    assert last_whole(tmp_path) is None
    for updates in (9, 10, 11):
        checkpoint(tmp_path, updates)
    halved(tmp_path / "checkpoint-11" / "model.safetensors")
    assert last_whole(tmp_path) == tmp_path / "checkpoint-10"
    assert left(tmp_path) == ["checkpoint-10", "checkpoint-9"]


def test_the_best_one_must_be_whole_as_well(tmp_path):
    checkpoint(tmp_path, 2, best=2)
    checkpoint(tmp_path, 4, best=2)
    assert last_whole(tmp_path) == tmp_path / "checkpoint-4"
    flipped(tmp_path / "checkpoint-2" / "model.safetensors")
    assert last_whole(tmp_path) is None
    assert left(tmp_path) == []
