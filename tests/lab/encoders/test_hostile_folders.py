"""Loading a model is reading data: no code of a folder is run, whichever door it comes in by."""

import ast
import json
import os
from pathlib import Path

import pytest
from processes import python

import isonb
from tests.lab import hostile_folders
from tests.lab.hostile_folders import ALIVE, HOSTILE, SOUND

# In one process: every door, for every folder; a mark that a door leaves is said and taken away.
DOORS = """
import contextlib, io, json, os, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import isonb
from isonb.cli import main
from isonb.models.locate import find
from isonb.models.loading import load
texts, out, zoo = sys.argv[1:]
lines = Path(texts).read_text().splitlines()
def command(*words):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        code = main(list(words))
    if code:
        raise ValueError(said.getvalue())
DOORS = {
    "audit": lambda place, hub: command("audit", ".", "--texts", texts, "--sample", "100"),
    "compare": lambda place, hub: command("audit", "tiny", "--compare", place, "--texts", texts, "--sample", "100"),
    "python": lambda place, hub: isonb.audit(Path(place), lines, progress=False),
    "hub": lambda place, hub: isonb.audit(hub, lines, progress=False),
    "load": lambda place, hub: load(place),
    "run": lambda place, hub: command("run", "--protocol", "smoke", "--task", "english_similarity", "--model", place,
                                      "--set", "max_length=32", "--out", out),
}
for name, place, hub, mark, doors in json.loads(zoo):
    os.chdir(place)
    for door in doors:
        said = ""
        try:
            DOORS[door](place, hub)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        ran = os.path.exists(mark)
        if ran:
            os.remove(mark)
        print(json.dumps([name, door, ran, said]), flush=True)
"""
MECHANISMS = ("audit", "load")  # what reads modules, and what reads one encoder
OTHERS = {"isonb.Evil": ("hub", "compare", "python"), "files beside": ("hub", "run")}

# What the libraries run where they are told to trust a folder, so that a mark could be left.
TRUSTING = """
import contextlib, json, os, sys
import torch
from sentence_transformers import SentenceTransformer
for name, place, mark in json.loads(sys.argv[1]):
    with contextlib.suppress(Exception):
        if "pickle" in name:
            for file in os.scandir(place):
                if file.name.endswith(".bin"):
                    torch.load(file.path, weights_only=False)
        SentenceTransformer(place, device="cpu", trust_remote_code=True)
    print(json.dumps([name, os.path.exists(mark)]))
"""


def doors_of(name):
    return [*MECHANISMS, *OTHERS.get(name, ())]


@pytest.fixture(scope="module")
def folders(bert, tmp_path_factory):
    """Every folder by its name, in the layout of the hub's cache, and the mark that its code leaves."""
    root = tmp_path_factory.mktemp("zoo")
    sound = hostile_folders.sound_folder(bert, root / "sound")
    marks = {name: root / f"ran-{number}" for number, name in enumerate(HOSTILE | SOUND)}
    return {name: (hostile_folders.plant(name, sound, root / "hub", mark), mark) for name, mark in marks.items()}


def lines_of(script, folders, *arguments):
    """What a process of ``script`` says, a line of JSON each, with the folders as the cache of the hub."""
    hub = next(iter(folders.values()))[0].parents[2]
    environment = {"HF_HUB_CACHE": str(hub), "HF_MODULES_CACHE": str(hub.parent / "code"), "HF_HUB_OFFLINE": "1"}
    report = python("-P", "-c", script, *arguments, env=os.environ | environment)
    return [json.loads(line) for line in report.splitlines()]


@pytest.fixture(scope="module")
def zoo(folders, tmp_path_factory):
    """What each door did with each folder: {name: {door: (whether code ran, what was said)}}."""
    home = tmp_path_factory.mktemp("said")
    (home / "texts.txt").write_text("\n".join(f"text {number} of a cone" for number in range(120)))
    plan = [
        (name, str(folder), f"org/{folder.parents[1].name.rpartition('-')[2]}", str(mark), doors_of(name))
        for name, (folder, mark) in folders.items()
    ]
    output = {}
    for name, door, ran, text in lines_of(
        DOORS, folders, str(home / "texts.txt"), str(home / "runs"), json.dumps(plan)
    ):
        output.setdefault(name, {})[door] = (ran, text)
    return output


def test_no_code_of_a_folder_runs_by_any_door(zoo):
    """One test, so that one worker opens the zoo: hostile folders are refused by a typed error, sound ones load."""
    assert {name: list(text) for name, text in zoo.items()} == {name: doors_of(name) for name in HOSTILE | SOUND}
    assert [(name, door) for name, output in zoo.items() for door, (ran, _) in output.items() if ran] == []
    typed = "the model must be an embedded name"
    refused = {(name, door): phrase for name in HOSTILE for door, (_, phrase) in zoo[name].items() if door != "load"}
    assert {place: phrase for place, phrase in refused.items() if typed not in phrase} == {}
    assert [(name, door, phrase) for name in SOUND for door, (_, phrase) in zoo[name].items() if phrase] == []


def test_the_code_is_alive(folders):
    report = lines_of(TRUSTING, folders, json.dumps([(name, *map(str, folders[name])) for name in ALIVE]))
    assert dict(report) == dict.fromkeys(ALIVE, True)


def test_no_call_trusts_a_repository():
    """``trust_remote_code`` stands as False, in words, or not at all: without it transformers asks whoever is there."""
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in Path(isonb.__file__).parent.rglob("*.py")]
    keywords = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    assert {ast.unparse(node.value) for node in keywords if node.arg == "trust_remote_code"} == {"False"}
