"""Words of users in methods, tasks and errors: shown by every command, obeyed by no terminal and no page."""

import io
import sys

import pytest
from altair import Chart, Data

from isonb.cli import main
from isonb.runtime.told import Picture, Section, as_page
from isonb_lab.runs.record import Record, write_record

WORD = "<img src=x onerror=alert(1)>\x1b[2K\u202e::|"


@pytest.fixture
def runs(tmp_path):
    config = {"experiment": "finetune", "model": WORD, "task": WORD, "protocol": "small"}
    for seed in range(3):
        for method, score in (("none", 0.7), ("istar", 0.8 + 0.01 * seed)):
            settings = {**config, "method": {"name": method, "note": WORD}, "seed": seed}
            metrics = {"accuracy": score, "baseline.accuracy": 0.5}
            write_record(
                tmp_path / "runs" / "records", Record(settings, metrics=metrics, manifest={"warnings": [WORD]})
            )
    lost = {**config, "method": {"name": "none", "note": WORD}, "seed": 9}
    write_record(tmp_path / "runs" / "records", Record(lost, status="failed", error=WORD))
    return tmp_path / "runs"


@pytest.mark.parametrize("command", ["collect", "status", "compare"])
def test_no_command_prints_an_escape_sequence(command, runs, tmp_path, capsys):
    files = {"collect": ["--out", str(tmp_path / "t.md")], "compare": ["--html", str(tmp_path / "t.html")]}
    main([command, str(runs), *files.get(command, [])])
    output = capsys.readouterr()
    for text in (output.out, output.err, *(path.read_text() for path in tmp_path.glob("t.*"))):
        assert not {"\x1b", "\u202e"} & set(text)
    assert "\\x1b[2K" in output.out
    assert all("<img" not in path.read_text() for path in tmp_path.glob("t.*"))


def test_a_picture_of_words_with_control_characters_is_drawn():
    text = Data(values=[{"arm": WORD, "gain": 1}, {"arm": "none\x00", "gain": 2}])
    chart = Chart(text).mark_point().encode(x="gain:Q", y="arm:N")
    assert "<svg" in as_page("it", "it", [Section("", [Picture(chart)])])


def test_a_terminal_without_unicode_gets_every_word(runs, monkeypatch):
    page = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", page)
    for command in ("collect", "status", "compare"):
        assert main([command, str(runs)]) in (0, 1)
    print_arrow = main(["list", "methods"])
    page.seek(0)
    assert print_arrow == 0
    assert "\\u202e" in page.read()
