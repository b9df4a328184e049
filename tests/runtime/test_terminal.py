"""Words of users are shown and never obeyed: no control character, no command of a build's log."""

import io
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import isonb
from isonb import cli
from isonb.runtime.terminal import printable, screen

ERASE = "\x1b[1A\x1b[2K" * 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, naïve 你好 שלום", "plain text, naïve 你好 שלום"),
        ("\x9b2K", r"\x9b2K"),
        ("a\rb\x08\x07", r"a\rb\x08\x07"),
        ("turned \u202eaway", r"turned \u202eaway"),
        ("lone \ud800", r"lone \ud800"),
        ("::error::x", ": :error::x"),
        ("std::vector", "std::vector"),
        ("##vso[task.complete]", "# #vso[task.complete]"),
    ],
)
def test_what_is_obeyed_is_shown(text, shown):
    assert printable(text) == shown
    assert screen(f"{text}\nnext") == f"{shown}\nnext"


def test_texts_of_vectors_reach_no_terminal():
    x = np.random.default_rng(0).normal(size=(120, 16))
    x[[3, 4]] = x[1]
    text = repr(isonb.audit(x, [f"{ERASE}::error::{i} and so on" for i in range(120)]))
    assert "and so on" in text
    assert "\x1b" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())


def test_names_of_files_and_columns_reach_no_terminal(tmp_path, capsys):
    name = f"{ERASE}::error::x"
    np.savez(tmp_path / "a.npz", **{f"{name}{i}": np.ones((30, 4)) for i in range(2)})
    assert cli.main(["audit", str(tmp_path / "a.npz")]) == 2
    assert cli.main(["audit", str(tmp_path / f"{ERASE}.npy")]) == 2
    output = capsys.readouterr().err
    assert "\x1b" not in output
    assert not any(line.lstrip().startswith("::") for line in output.splitlines())


@pytest.fixture
def vectors(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(60, 4)))
    return str(tmp_path / "x.npy")


def test_a_report_goes_through_a_link_and_into_a_pipe(vectors, tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "target.json")
    assert cli.main(["audit", vectors, "--json", str(tmp_path / "link.json")]) == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "target.json").read_text())["n"] == 60
    os.mkfifo(tmp_path / "pipe")
    heard = []
    reader = threading.Thread(target=lambda: heard.append((tmp_path / "pipe").read_text()))
    reader.start()
    assert cli.main(["audit", vectors, "--json", str(tmp_path / "pipe")]) == 0
    reader.join(10)
    assert json.loads(heard[0])["d"] == 4
    assert (tmp_path / "pipe").is_fifo()
    assert cli.main(["audit", vectors, "--json", "/dev/null"]) == 0
    assert not os.path.isfile("/dev/null")


def test_the_standard_output_is_the_report_alone(vectors, tmp_path):
    arguments = [sys.executable, "-m", "isonb", "audit", vectors, "--json", "/dev/stdout"]
    with (tmp_path / "out").open("w") as file:
        subprocess.run(arguments, stdout=file, stderr=subprocess.DEVNULL, check=True)
    assert json.loads((tmp_path / "out").read_text())["n"] == 60


def test_a_terminal_without_utf_8_gets_plain_signs(tmp_path, monkeypatch):
    """As in a build whose output is ASCII, or in a console of Windows."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(100, 8)) + 1)
    page = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", page)
    assert cli.main(["audit", str(tmp_path / "x.npy")]) == 0
    page.seek(0)
    assert " -> " in page.read()
