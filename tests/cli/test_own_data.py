"""What `isonb tasks check` says of data of one's own: doubts, and mistakes as one short line with exit code 2."""

import json
import os

import pytest

from isonb.cli import main
from isonb.errors import SCREEN
from isonb_lab.data.own import own_task
from isonb_lab.sweeps.outcomes import Outcome

pytestmark = pytest.mark.usefixtures("here")


def csv(name, *rows):
    with open(name, "w", encoding="utf-8") as file:
        file.write("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return name


def jsonl(name, rows):
    with open(name, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return name


def output(capsys, *arguments):
    """Exit code, what was printed, and the error."""
    code = main(list(arguments))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


CLEAN = [(f"text {i}", "ab"[i % 2]) for i in range(20)]
OTHER = [(f"other {i}", "ab"[i % 2]) for i in range(8)]
DOUBTS = {  # rows more on either side, and what is said
    "none": ([], [], []),
    "validation texts": (
        [],
        [("Text  3", "b")],
        ["1 of 9 validation rows have a text that stands in the training rows"],
    ),
    "a text with both labels": (
        [("text 1", "a"), ("text 2", "b"), ("text 2", "a")],
        [],
        ["2 texts carry several labels, in different rows, as 'text 1'"],
    ),
    "on both sides": ([], [("text 0", "b")], ["1 of 9 validation rows", "1 texts carry several labels"]),
    "no validation row": ([("rare", "c")], [], ["no validation row has the label c"]),
    "no training row": ([], [("rare", "c")], ["no train row has the label c"]),
}


@pytest.mark.parametrize("case", DOUBTS)
def test_doubts_are_said(here, capsys, case):
    training, validation, doubts = DOUBTS[case]
    (here / "set").mkdir()
    csv(here / "set" / "train.csv", *CLEAN, *training)
    csv(here / "set" / "validation.csv", *OTHER, *validation)
    code, out, _ = output(capsys, "tasks", "check", "./set")
    warned = [line for line in out.splitlines() if line.startswith("warning")]
    assert code == 0
    assert len(warned) == len(doubts)
    assert all(doubt in line for doubt, line in zip(doubts, warned, strict=True))


@pytest.mark.parametrize("how", ["the same name", "a link"])
def test_one_file_for_both_splits(here, capsys, how):
    csv("all.csv", *CLEAN)
    os.symlink("all.csv", "again.csv")
    second = "all.csv" if how == "the same name" else "again.csv"
    (here / "my.yaml").write_text(f"data_files: {{train: all.csv, validation: {second}}}\n")
    code, out, _ = output(capsys, "tasks", "check", "my.yaml")
    assert code == 0
    assert "one file serves two splits" in out
    assert "20 of 20 validation rows" in out


SETS = (["toxic"], ["toxic", "threat"], ["threat"], [])
SEVERAL = {
    "lists of words": lambda i: SETS[i % 4],
    "a mapping": lambda i: {"toxic": i % 2},
    "a list as Python prints it": lambda i: str(SETS[i % 3]),
    "words joined by a bar": lambda i: ["a", "b", "a|b"][i % 3],
}


@pytest.mark.parametrize("case", SEVERAL)
def test_several_labels_a_row_are_refused_with_what_to_do(capsys, case):
    jsonl("my.jsonl", [{"text": f"text {i}", "labels": SEVERAL[case](i)} for i in range(60)])
    code, out, err = output(capsys, "tasks", "check", "my.jsonl")
    assert (code, out) == (2, "")
    assert "labels must hold one label a row; got" in err
    assert "Keep one a row, or make a task of each label" in err
    assert err.count("\n") == 1


def test_a_label_with_a_mark_can_be_one_label():
    csv("my.csv", *[(f"text {i}", ["a", "b", "a|b"][i % 3]) for i in range(60)])
    assert own_task("my.csv?labels=a,b,a|b").labels == ("a", "b", "a|b")
    csv("other.csv", *[(f"text {i}", ["yes|no", "maybe"][i % 2]) for i in range(60)])
    assert own_task("other.csv").labels == ("maybe", "yes|no")


WORDS = {
    "64-bit numbers": ["9007199254740992", "9007199254740993", "9007199254740994"],
    "a nought behind": ["1.10", "1.1", "2"],
    "a sign": ["+1", "1", "-1"],
    "words that read as numbers": ["infinity", "inf", "1"],
    "5,000 digits": ["9" * 5000, "8", "7"],
}


@pytest.mark.parametrize("case", WORDS)
def test_labels_stay_the_words_they_are(case):
    text = WORDS[case]
    csv("my.csv", *[(f"text {i}", text[i % 3]) for i in range(60)])
    task = own_task("my.csv?kind=classification")
    assert sorted(task.labels) == sorted(text)
    rows = [row for table in task.tables.values() for row in table.to_pylist()]
    assert all(task.labels[row["label"]] == text[int(row["text"].split()[1]) % 3] for row in rows)


def test_names_for_numbers_do_not_merge_them(capsys):
    csv("my.csv", *[(f"text {i}", ["007", "7"][i % 2]) for i in range(60)])
    code, _, err = output(capsys, "tasks", "check", "my.csv", "--labels", "a,b")
    assert code == 2
    assert "a label must be one of those there are; got '007'" in err


def test_too_few_names_for_numbers_are_counted(capsys):
    csv("my.csv", *[(f"text {i}", i % 3) for i in range(60)])
    code, _, err = output(capsys, "tasks", "check", "my.csv", "--labels", "no,yes")
    assert code == 2
    assert "must have a name for each number; got 3 different numbers, 2 names. Name each" in err


def test_an_error_of_a_hundred_thousand_characters_is_cut_to_a_screen(capsys):
    long = "label " * 17_500
    csv("my.csv", *[(f"text {i}", [long, "b"][i % 2]) for i in range(60)])
    code, _, err = output(capsys, "run", "--task", "my.csv", "--target", "lable" * 20_000)
    assert code == 2
    assert len(err) < SCREEN + 200
    report = str(Outcome("a-run", "failed", f"TaskError: {long}\nTraceback"))
    assert len(report) < SCREEN + 200
    assert "characters; its record has the rest]" in report
    assert "the rest is left out" in str(Outcome("a-run", "not recorded", long))
