"""Files as people have them: what is understood of them, a run on each kind, and the usual mistakes."""

import json

import datasets
import pytest
from cola import write_rows
from one_line import assert_one_line

from isonb import cli
from isonb_lab.data import own_columns
from isonb_lab.data.own import SHARE, is_own, own_task, spelled, with_options
from isonb_lab.data.rows import load_task
from isonb_lab.data.tasks import TASKS, task_named, task_size
from isonb_lab.engines.experiment import run
from isonb_lab.runs.inputs import differences, inputs
from isonb_lab.runs.settings import command, plan, resolve
from isonb_lab.sweeps.cost import needs
from isonb_lab.sweeps.grids import load_grid

ROWS = 40
WORDS = ("a dull plot", "a fine cast", "slow music", "quick talk", "bright light")
SMOKE = {"model": "tiny", "protocol": "smoke", "max_steps": 1, "batch_size": 8, "cloud_examples": 0}
SIMILAR = {"model": "tiny", "protocol": "smoke"}
SPANS = SMOKE | {"max_length": 32, "doc_stride": 4}
SPLITS, PAIR = ("train", "validation"), ("sentence1", "sentence2")
pytestmark = pytest.mark.usefixtures("here")


def lines(*rows):
    return "\n".join(rows) + "\n"


def text(number):
    """A sentence with a comma, as free text has."""
    return f"It has {WORDS[number % 5]}, and part {number} has {WORDS[number % 3]}."


def reviews(path, count=ROWS):
    """A CSV with text and words for labels, as a spreadsheet saves it."""
    rows = (f'"{text(i)}",{("bad", "good")[i % 2]}' for i in range(count))
    path.write_bytes(lines("Text,Label", *rows).replace("\n", "\r\n").encode("utf-8-sig"))


def stars(path):
    """A TSV with a score, and quotation marks that stand alone."""
    path.write_text(lines("id\ttext\tscore", *(f'{i}\t"So {text(i)}\t{1 + i % 9 / 2}' for i in range(ROWS))))


def pairs(path):
    """JSON lines of pairs with scores."""
    rows = [{"sentence1": text(i), "sentence2": text(i + i % 4), "score": 5 - i % 4} for i in range(ROWS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def spans(path):
    """Parquet of questions, as SQuAD has them."""
    answer = {"text": ["It"], "answer_start": [0]}
    rows = [{"question": "What has it?", "context": text(i), "answers": answer} for i in range(ROWS)]
    write_rows(path, rows)


def saved(path):
    """A data set with two splits and names of labels, saved by the library datasets."""
    kinds = datasets.Features({"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["yes", "no"])})
    rows = [{"sentence": text(i), "label": i % 2} for i in range(ROWS)]
    train, test = (datasets.Dataset.from_list(part, features=kinds) for part in (rows, rows[:12]))
    datasets.DatasetDict(train=train, test=test).save_to_disk(path)


@pytest.mark.parametrize(
    ("write", "name", "settings", "meaning", "metric"),
    [
        (reviews, "reviews.csv", SMOKE, ("classification", ("Text",), "Label", ("bad", "good"), SPLITS), "accuracy"),
        (stars, "stars.tsv", SMOKE, ("regression", ("text",), "score", (), SPLITS), "pearson"),
        (pairs, "pairs.jsonl", SIMILAR, ("similarity", PAIR, "score", (), ("test",)), "spearman.all"),
        (spans, "spans.parquet", SPANS, ("span", ("question", "context"), "answers", (), SPLITS), "squad_f1"),
        (saved, "saved", SMOKE, ("classification", ("sentence",), "label", ("yes", "no"), SPLITS), "accuracy"),
    ],
)
def test_a_file_is_understood_and_becomes_a_record(write, name, settings, meaning, metric, here):
    write(here / name)
    task = task_named(name)
    assert (task.kind, task.inputs, task.target, task.labels, task.splits) == meaning
    texts = load_task(name, split=task.splits[0])[task.inputs[-1]][:]
    assert {item.removeprefix('"So ') for item in texts} <= {text(i) for i in range(ROWS + 3)}
    assert write is not stars or texts[0].startswith('"So ')
    assert write is not saved or task.notes == ("'train' is trained on, 'test' is reported",)
    assert write is not pairs or own_task(f"{name}?kind=regression").splits == SPLITS
    record = run({"task": name} | settings, progress=False)
    assert record.metrics[metric] is not None
    assert record.manifest["data"] == inputs(plan(record.config), None)
    assert record.manifest["data"]["task"] == own_task(name).digest
    assert command(record.config).startswith(f"isonb run --task {name} --model tiny --method none")


def test_rows_kept_for_validation_are_a_fixed_share(here):
    reviews(here / "reviews.csv")
    task = own_task("reviews.csv")
    remaining = task.tables["validation"]["Text"].to_pylist()
    assert len(remaining) == SHARE * ROWS == 8
    assert sorted(remaining + task.tables["train"]["Text"].to_pylist()) == sorted(text(i) for i in range(ROWS))
    reviews(here / "again.csv")
    assert own_task("again.csv").tables["validation"]["Text"].to_pylist() == remaining


def test_a_yaml_file_says_what_a_name_does_not(here):
    (here / "data").mkdir()
    rows = ["title,body,stars", *(f"t{i},b{i},{1 + i % 3}" for i in range(ROWS))]
    (here / "data/a.csv").write_text(lines(*rows))
    (here / "data/b.csv").write_text(lines(*rows[:11]))
    report = "inputs: [title, body]\ntarget: stars\nlabels: [no, so so, yes]\nmetrics: matthews\n"
    (here / "data/my.yaml").write_text(f"data_files: {{train: a.csv, validation: b.csv}}\n{report}")
    task = own_task("data/my.yaml")
    assert (task.inputs, task.labels, task.metrics) == (("title", "body"), ("no", "so so", "yes"), ("matthews",))
    assert [len(table) for table in task.tables.values()] == [ROWS, 10]
    assert task.tables["train"]["stars"].to_pylist()[:4] == [0, 1, 2, 0]
    changed = own_task("data/my.yaml?kind=regression&metrics=spearman")
    assert (changed.kind, changed.metrics) == ("regression", ("spearman",))


def test_a_folder_of_files_by_split(here):
    (here / "mine").mkdir()
    reviews(here / "mine/train.csv")
    reviews(here / "mine/dev.csv", 6)
    (here / "mine/notes.txt").write_text("no data")
    assert [len(table) for table in own_task("mine").tables.values()] == [ROWS, 6]
    (here / "mine/dev.csv").rename(here / "mine/test.csv")
    assert own_task("mine?validation_split=test").notes == ("'train' is trained on, 'test' is reported",)


def test_one_spelling_one_run(here):
    reviews(here / "reviews.csv")
    names = ("reviews.csv", "./reviews.csv", ".//reviews.csv")
    assert len({plan(SMOKE | {"task": name}).run_id for name in names}) == 1
    assert spelled("./a.csv?target=b&inputs=x y,z") == "a.csv?inputs=x y,z&target=b"
    odd = with_options("a.csv", {"inputs": ("a,b", "c&d=%"), "target": "e?f"})
    assert with_options(odd, {}) == odd == spelled(odd)
    reviews(here / "cola")
    assert task_named("cola") is TASKS["cola"]
    assert not is_own("sst-3")


def test_a_grid_takes_files(here):
    reviews(here / "reviews.csv")
    pairs(here / "pairs.jsonl")
    (here / "grid.yaml").write_text("smoke: {task: [reviews.csv, ./pairs.jsonl, english_sts], method: [none, istar]}")
    result = {need.name: (need.where, need.runs) for need in needs(load_grid("grid.yaml", "smoke"))}
    assert set(result) == {"tiny", "reviews.csv", "pairs.jsonl", "english_sts"}
    assert result["reviews.csv"] == (f"in {here.resolve() / 'reviews.csv'}", 2)
    size = task_size("reviews.csv")
    assert (size.train, size.evaluation) == (32, 8)
    assert 5 < size.tokens < 20
    (here / "reviews.csv").unlink()
    assert task_size("reviews.csv").train == 10_000


def test_rows_or_a_meaning_that_changed_are_other_inputs(here):
    def fingerprints():
        return inputs(plan(SMOKE | {"task": "my.yaml"}), None)

    reviews(here / "reviews.csv")
    (here / "my.yaml").write_text("data_files: reviews.csv\n")
    before = fingerprints()
    (here / "my.yaml").write_text("data_files: reviews.csv\nmetrics: f1\n")
    assert differences(before, fingerprints()).startswith("other task (")
    reviews(here / "reviews.csv", ROWS + 1)
    assert "train (" in differences(before, fingerprints())


@pytest.mark.parametrize(
    ("values", "expected", "named", "result"),
    [
        ([True, False], (), (), ([1, 0], ("false", "true"))),
        (["10", "9", "-1"], (), (), ([2, 1, 0], ("-1", "9", "10"))),
        ([5, 3, 4], ("a", "b", "c"), (), ([2, 0, 1], ("a", "b", "c"))),
        ([1, 2], ("a", "b", "c"), (), ([1, 2], ("a", "b", "c"))),
        ([1, 0], (), ("yes", "no"), ([1, 0], ("yes", "no"))),
    ],
)
def test_labels_by_number(values, expected, named, result):
    assert own_columns.labelled(values, "x", expected, named) == result


def csv(*rows):
    return {"a.csv": lines(*rows)}


SPAN = ("question,context,answer", "q,a b,b")
TWO = lines("text,label", "x,1", "y,0")
FLOATS = lines("text,label", *(f"t{i},{i / 7:.4f}" for i in range(300)))
SAME = lines("sentence1,sentence2,score", "x,y,1", "y,z,1")
LAUGHS = "- &a0 [x]\n" + "".join(f"- &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
UNREADABLE = {  # what takes all memory, all digits, all levels, half a character
    name: ({file: content, "my.csv": TWO}, file, text)
    for name, file, text, content in (
        ("aliases of aliases", "a.yaml", "labels of a.yaml must be words", f"data_files: my.csv\nlabels:\n{LAUGHS}"),
        ("brackets", "a.yaml", "must be a readable YAML file", f"labels: {'[' * 3000}{']' * 3000}\n"),
        ("5,000 digits", "a.jsonl", "", '{"text": "a", "label": ' + "9" * 5000 + "}\n"),
        ("nested for ever", "a.jsonl", "", '{"text": "a", "label": ' + "[" * 100_000 + "]" * 100_000 + "}\n"),
        ("half a character", "a.jsonl", "", '{"text": "\\ud800", "label": 1}\n{"text": "b", "label": 0}\n'),
        ("types apart", "a.jsonl", "", '{"text": "a", "label": 1}\n{"text": "b", "label": {"c": 1}}\n'),
    )
}
MISTAKES = {
    "missing file": ({}, "nowhere.csv", "own data must be a file or folder that is there; got no file"),
    "wrong column": ({"a.csv": TWO}, "a.csv?target=lable", "Did you mean 'label'?"),
    "no known column": (csv("body,label", "x,1", "y,0"), "a.csv", "Name it by --inputs"),
    "floats as labels": ({"a.csv": FLOATS}, "a.csv?kind=classification", "in 300 rows. Take --kind regression"),
    "one label": (csv("text,label", "x,1", "y,1"), "a.csv", "got '1' in each row"),
    "empty file": ({"a.csv": ""}, "a.csv", "must have rows; got an empty file"),
    "ragged": (csv("text,label", "x,1", "a, b,0"), "a.csv", "Expected 2 fields in line 3, saw 3"),
    "column twice": (csv("text,text", "x,1"), "a.csv", "must have each column once; got 'text' twice"),
    "empty text": (csv("text,label", "x,1", ",0"), "a.csv", "an empty one in row 2"),
    "bad JSON": ({"a.jsonl": lines('{"text": "x"}', "{text}")}, "a.jsonl", "of line 2"),
    "not UTF-8": ({"a.csv": b"text,label\ncaf\xe9,1\n"}, "a.csv", "must be text in UTF-8"),
    "folder": ({"mine/notes.txt": "x"}, "./mine", "must be a saved data set, or hold train"),
    "suffix": ({"mine/a.xlsx": "x"}, "mine/a.xlsx", "must be one of .csv, .tsv"),
    "unknown key": ({"a.yaml": "data_files: a.csv\ntaget: x\n"}, "a.yaml", "Did you mean 'target'?"),
    "no data_files": ({"a.yaml": "kind: span\n"}, "a.yaml", "must say data_files"),
    "a list of kinds": ({"a.yaml": "data_files: a.csv\nkind: [span]\n"}, "a.yaml", "kind of a.yaml must be one word"),
    "unknown kind": ({"a.csv": TWO}, "a.csv?kind=regresion", "'regression'"),
    "words to regress": (csv("text,score", "x,1", "y,high"), "a.csv?kind=regression", "got 'high' in row 2"),
    "unknown label": (csv("text,label", "x,good", "y,bad"), "a.csv?labels=god,bad", "got 'good'. Did you mean 'god'?"),
    "unknown split": ({"m/train.csv": TWO}, "./m?validation_split=x", "a split"),
    "the same score": ({"a.csv": SAME}, "a.csv", "score must hold different values; got 1 in each row"),
    "answer elsewhere": (csv(*SPAN, "q,a b,c"), "a.csv", "answers that stand in their context; got 'c' in row 2"),
    "a text column twice": (csv(*SPAN), "a.csv?kind=span&inputs=context,context", "must be named once; got context, c"),
    "F1 of three labels": (csv("text,label", "w,a", "x,a", "y,b", "z,c"), "a.csv?metrics=f1", "for f1"),
    "two files of a split": ({"m/train.csv": TWO, "m/train.tsv": TWO}, "./m", "got train.csv, train.tsv. Take one"),
    "an answer at true": (
        {"a.jsonl": '{"question": "q", "context": "ab", "answers": {"text": "b", "answer_start": true}}'},
        "a.jsonl",
        "stand in their context; got {'text': 'b', 'answer_start': True} in row 1",
    ),
    **UNREADABLE,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing(mistake, here, capsys):
    files, name, report = MISTAKES[mistake]
    for place, content in files.items():
        (here / place).parent.mkdir(exist_ok=True)
        (here / place).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert_one_line(capsys, here, ["tasks", "check", name], report)


def test_check_says_what_was_understood(here, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    reviews(here / "reviews.csv")
    assert cli.main(["tasks", "check", "reviews.csv"]) == 0
    output = capsys.readouterr().out
    counts = [own_task("reviews.csv").tables["train"]["Label"].to_pylist().count(label) for label in (0, 1)]
    for text in (f"32 rows: 0 bad {counts[0]}x, 1 good {counts[1]}x", "classification", "8 of 40 rows", "-> good"):
        assert text in output
    assert all(len(line) <= 60 for line in output.splitlines() if line.startswith("row "))
    assert output.endswith("isonb run --task reviews.csv\n")
    assert cli.main(["tasks", "check", "reviews.csv", "--inputs", "Text", "--labels", "bad, good"]) == 0
    assert "isonb run --task 'reviews.csv?inputs=Text&labels=bad,good'" in capsys.readouterr().out


def test_flags_of_a_run_are_part_of_its_task_and_for_files_alone(here, capsys):
    from isonb_lab.cli.commands import planned_run

    (here / "a.csv").write_text(lines("my text,stars", *(f"t{i},{i % 3}" for i in range(9))))
    arguments = ["run", "--task", "./a.csv", "--inputs", "my text", "--target", "stars", "--kind", "regression"]
    config = planned_run(cli._parser().parse_args(arguments)).config
    assert config["task"] == "a.csv?inputs=my text&kind=regression&target=stars"
    assert config == resolve(config)
    assert "--task 'a.csv?inputs=my text&kind=regression&target=stars'" in command(config)
    for line, report in (
        ("run --task cola --kind span", "--kind is for files of your own; got 'cola'"),
        ("tasks check cola", "looks at a file or folder of your own"),
    ):
        assert_one_line(capsys, here, line.split(), report)
