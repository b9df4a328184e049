"""The command line: what it prints, its exit codes, and that it starts without the libraries it doesn't need."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from processes import python

import isonb
from isonb import cli
from isonb.errors import install_line
from isonb.measures.registry import MEASURES
from isonb_lab.cli import LISTS, commands, lists
from isonb_lab.cli.comparisons import control_lines
from isonb_lab.cli.summary import summary
from isonb_lab.data.tasks import TASKS
from isonb_lab.methods import methods
from isonb_lab.runs.inputs import named
from isonb_lab.runs.protocols import PROTOCOLS
from isonb_lab.runs.record import Record, write_record
from isonb_lab.runs.settings import plan, resolve
from isonb_lab.sweeps import cost
from isonb_lab.sweeps.outcomes import Outcome, Report

GRIDS = Path(isonb.__file__).resolve().parents[1] / "book" / "experiments"
GRID = str(GRIDS / "shrink_the_longest.yaml")
SMOKE = {"task": "english_acceptability", "model": "tiny", "protocol": "smoke"}
HEAVY = ("torch", "transformers", "datasets", "sklearn", "accelerate", "pandas", "yaml", "distributed")


def record(score=0.5, status="complete", **options):
    config = resolve(SMOKE | options)
    metrics = {"matthews": score, "accuracy": 0.8, "baseline.matthews": 0.0, "baseline.accuracy": 0.7}
    return Record(
        config, metrics=metrics if status == "complete" else {}, status=status, error="" if score else "broke"
    )


@pytest.fixture
def swept(monkeypatch):
    """Calls of ``sweep``, which runs nothing."""
    calls = []

    def sweep(runs, out, **options):
        calls.append(([run.config for run in runs], out, options))
        return Report([Outcome(run.run_id, "finished") for run in runs])

    monkeypatch.setattr(commands, "sweep", sweep)
    return calls


@pytest.mark.parametrize(
    "phrase", [[], *([name] for name in cli.commands())], ids=lambda message: " ".join(message) or "isonb"
)
def test_help_has_every_command_its_options_and_examples_that_parse(phrase, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*phrase, "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    if not phrase:
        assert all(name in text for name in cli.commands())
        return
    for line in filter(None, map(str.strip, text.split("examples:")[1].split("\n"))):
        isonb, *example = shlex.split(line)
        assert isonb == "isonb"
        assert cli._parser().parse_args(example).command == phrase[0]


def test_a_synthetic_run_has_neither_task_nor_encoder_nor_method(executed, tmp_path, capsys):
    arguments = ["run", "--experiment", "synthetic", "--protocol", "smoke", "--seed", "3"]
    for extra in ("--task cola", "--model tiny", "--method istar", "-o weight=1"):
        assert cli.main([*arguments, *extra.split()]) == 2
        assert "synthetic run" in capsys.readouterr().err
    assert cli.main([*arguments, "--out", str(tmp_path)]) == 0
    assert "synthetic, seed 3" in capsys.readouterr().out
    (config, _, _), *_ = executed
    assert config == resolve({"experiment": "synthetic", "seed": 3, "protocol": "smoke"})


def test_help_imports_no_library():
    code = f"""
import contextlib, sys
from isonb.cli import main
for command in ("sweep", "compare"):
    with contextlib.suppress(SystemExit):
        main([command, "--help"])
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    assert python("-c", code).splitlines()[-1] == "[]"


def test_the_version_is_that_of_the_project(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    project = tomllib.loads((GRIDS.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert capsys.readouterr().out == f"isonb {isonb.__version__}\n" == f"isonb {project['version']}\n"
    lab = tomllib.loads((GRIDS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert lab["version"] == isonb.__version__
    assert f"=={lab['version']}" in lab["dependencies"][0]


def test_run_by_default_is_the_embedded_model_on_an_embedded_task(executed, tmp_path, capsys):
    assert cli.main(["run", "--out", str(tmp_path)]) == 0
    config, _, options = executed[0]
    text = capsys.readouterr().out
    assert config == resolve({"task": "english_sentiment", "model": "tiny", "protocol": "embedded"})
    for phrase in (["--model", "tiny"], ["--set", "model=tiny"], ["--protocol", "embedded"]):
        assert cli.main(["run", *phrase, "--out", str(tmp_path)]) == 0
        assert executed[-1][0] == config, "what is the default anyway changes nothing"
    assert options == {"data": None, "retry_failed": False}
    assert "accuracy  0.7500   (the majority baseline: 0.5000)" in text
    assert re.search(r"^time      [0-9.]+ s$", text, re.M)  # the record of this test measured nothing
    name = plan(config).run_id
    for place in (f"records/{name}.json", f"notebooks/{name}.ipynb"):
        assert str(tmp_path / place) in text


def test_a_control_that_is_no_good_is_asked_for(executed, tmp_path, capsys):
    arguments = ["run", "--protocol", "smoke", "--method", "istar", "--out", str(tmp_path)]
    control = plan({"task": "english_sentiment", "protocol": "smoke"})
    records, metrics = tmp_path / "records", {"accuracy": 0.5, "baseline.accuracy": 0.5}
    expected = f"control   none, not in {tmp_path}: the same with --method none"
    write_record(records, Record(control.config, status="failed", error="it broke"))
    assert cli.main(arguments) == 0
    assert expected in capsys.readouterr().out
    (records / f"{control.run_id}.json").write_text("{")
    assert cli.main(arguments) == 0
    assert expected in capsys.readouterr().out
    write_record(records, Record(control.config, metrics))
    assert cli.main(arguments) == 0
    assert "control   none: accuracy 0.5000; isonb compare" in capsys.readouterr().out


def test_a_control_of_other_rows_is_not_shown_as_one(tmp_path):
    run = plan({"task": "english_sentiment", "protocol": "smoke", "method": "istar"})
    then, now = {"train": "a" * 64, "model": "m"}, {"train": "b" * 64, "model": "m"}
    record, records = Record(run.config, {"accuracy": 0.9}, manifest={"data": now}), tmp_path / "records"
    write_record(records, Record(run.control.config, {"accuracy": 0.5}, manifest={"data": then}))
    (line,) = control_lines(run, record, tmp_path)
    assert line.startswith("control   none on these rows (other train (aaaaaaaa then, bbbbbbbb now)), not in")
    again = run.control.with_inputs(named(now))
    write_record(records, Record(again.config, {"accuracy": 0.6}, manifest={"data": now}))
    assert control_lines(run, record, tmp_path)[0].startswith("control   none: accuracy 0.6000")


def test_a_doses_run_has_no_control_and_ends_well(executed, tmp_path, capsys):
    arguments = ["run", "--experiment", "doses", "--method", "isolayer", "--protocol", "smoke", "--out", str(tmp_path)]
    assert cli.main([*arguments, "--fail-under", "accuracy=0.7"]) == 0
    assert cli.main([*arguments, "--fail-under", "accuracy=0.8"]) == 1
    text = capsys.readouterr().out
    assert "control" not in text
    assert "record    " in text


def test_run_takes_options_of_the_method_and_settings(executed, tmp_path):
    text = "run --task english_sentiment --model minilm --method istar -o weight=-3 -o zeta=auto -o include_pads=true"
    text += " --seed 4 --protocol smoke --set learning_rate=1e-5 --set patience=null --retry-failed --data hub"
    assert cli.main([*text.split(), "--out", str(tmp_path)]) == 0
    config, out, options = executed[0]
    method = {"name": "istar", "weight": -3, "zeta": "auto", "include_pads": True}
    inputs = {"task": "english_sentiment", "model": "minilm", "seed": 4, "protocol": "smoke", "learning_rate": 1e-5}
    assert config == resolve(inputs | {"method": method})
    assert (out, options) == (str(tmp_path), {"data": "hub", "retry_failed": True})


def test_a_missing_library_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "isonb_lab.cli.commands", None)
    assert cli.main(["list", "tasks"]) == 2
    assert install_line("lab") in capsys.readouterr().err


def test_ctrl_c_is_no_traceback(monkeypatch, capsys, tmp_path):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "execute", stop)
    assert cli.main(["run", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "stopped; the same command goes on from here\n"


def test_sweep_says_what_it_will_do_before_it_does_it(swept, tmp_path, capsys):
    write_record(tmp_path / "records", record(method="none"))
    arguments = ["sweep", GRID, "--size", "smoke", "--out", str(tmp_path)]
    assert cli.main([*arguments, "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "3: 1 recorded, 0 failed before, 2 to do" in text
    assert "tiny: embedded (2 runs)" in text
    assert "english_acceptability: generated (2 runs)" in text
    assert "2 runs, " in text
    assert "NVIDIA A100" in text
    assert not swept
    assert cli.main([*arguments, "--workers", "2", "--scheduler", "local"]) == 0
    configs, out, options = swept[0]
    assert (len(configs), out) == (3, str(tmp_path))
    defaults = {"report_to": "", "keep_predictions": False}
    assert options == {"workers": 2, "scheduler": "local", "data": None, "retry_failed": False, **defaults}
    assert "3 finished" in capsys.readouterr().out
    for method in ({"name": "entropy"}, {"name": "entropy", "select": False}):
        write_record(tmp_path / "records", record(0, "failed", method=method))
    assert cli.main(arguments) == 1
    assert "3: 1 recorded, 2 failed before, 0 to do" in capsys.readouterr().out
    assert len(swept) == 1
    assert cli.main([*arguments, "--dry-run", "--retry-failed"]) == 0
    assert "3: 1 recorded, 2 failed before, 2 to do" in capsys.readouterr().out


def test_sweep_stops_where_data_is_missing_unless_told_to_go_on(swept, tmp_path, capsys):
    arguments = ["sweep", str(GRIDS / "head_to_head.yaml"), "--out", str(tmp_path / "out"), "--data", str(tmp_path)]
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert "MISSING cola" in out
    assert "models and data must be there" in err
    assert not swept
    assert cli.main([*arguments, "--yes"]) == 0
    assert len(swept) == 1


@pytest.mark.parametrize(
    ("answer", "hours", "terminal", "started"),
    [("y", 30, True, True), ("n", 30, True, False), ("", 30, False, True), (None, 3, True, True)],
)
def test_only_a_person_is_asked_and_only_before_long_sweeps(
    answer, hours, terminal, started, swept, tmp_path, monkeypatch
):
    def reply(prompt):
        assert answer is not None, "asked before a short sweep"
        assert "30 hours" in prompt
        return answer

    result = cost.Estimate(3, 1.0, hours, hours, "GPU")
    monkeypatch.setattr(commands, "estimate", lambda *args: result)
    monkeypatch.setattr(commands, "visible", tuple)
    monkeypatch.setattr("builtins.input", reply)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: terminal)
    assert cli.main(["sweep", GRID, "--size", "smoke", "--out", str(tmp_path)]) == 0
    assert bool(swept) == started


def test_status_counts(tmp_path, capsys):
    write_record(tmp_path / "records", record(method="none"))
    assert cli.main(["status", str(tmp_path), GRID, "--size", "smoke"]) == 0
    text = capsys.readouterr().out
    assert "1 complete" in text
    assert "2 pending" in text


def test_collect_prints_means_over_seeds_and_writes_all_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for seed, score in enumerate((0.4, 0.5, 0.9)):
        write_record(tmp_path / "records", record(score, seed=seed))
    write_record(tmp_path / "records", record(0.7, method={"name": "istar", "weight": -3}))
    write_record(tmp_path / "records", record(0, "failed", seed=9))
    (tmp_path / "records" / "odd.json").write_text("{", encoding="utf-8")
    file = tmp_path / "table.parquet"
    assert cli.main(["collect", str(tmp_path), "--out", str(file)]) == 0
    text = capsys.readouterr().out
    assert "4 runs, 1 failed, 1 damaged records" in text
    line = next(line for line in text.splitlines() if " none " in line)
    assert line.split() == ["tiny", "english_acceptability", "none", "matthews", "0.6000", "0.2646", "3", "0.0000"]
    assert "istar weight=-3" in text
    assert len(pd.read_parquet(file)) == 5


def test_similarity_stands_beside_plain_vectors(monkeypatch, tmp_path, capsys):
    metrics = {"spearman.mean": 61.0, "spearman.all": 60.0, "plain.spearman.mean": 55.0, "subset.a.spearman": 1.0}
    config = resolve({"task": "sts12", "model": "minilm", "method": "whitening"})
    whole = resolve({"task": "sickr", "model": "minilm", "method": "whitening"})
    result = summary([Record(config, metrics=metrics), Record(whole, metrics=metrics | {"spearman.mean": None})])
    assert result[["metric", "mean"]].values.tolist() == [["spearman.all", 60.0], ["spearman.mean", 61.0]]
    assert result["baseline"].tolist()[1] == 55.0
    write_record(tmp_path / "records", Record(config, metrics=metrics))
    monkeypatch.setattr(commands, "execute", lambda job: Outcome(job.run_id, "skipped"))
    arguments = ["run", "--task", "sts12", "--model", "minilm", "--method", "whitening"]
    assert cli.main([*arguments, "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "spearman.mean 61.0000   (plain vectors: 55.0000)" in text
    assert "it was there before" in text


def test_runs_from_before_and_after_an_option_came_are_one_row():
    old, new = (record(method="log_isoscore", seed=seed) for seed in (0, 1))
    del old.config["method"]["place"], old.config["pooling"]
    assert summary([old, new])["seeds"].tolist() == [2]


def test_rows_that_would_look_alike_say_in_what_they_differ():
    result = summary(
        [record(learning_rate=rate, method=method) for rate in (1e-5, 2e-5) for method in ("none", "istar")]
    )
    assert list(result["settings"]) == ["learning_rate=1e-05", "learning_rate=2e-05"] * 2
    changed = record(inputs="inputs-0123456789ab")
    assert list(summary([record(), changed])["settings"]) == ["inputs=None", "inputs=inputs-0123456789ab"]
    assert list(summary([record()])["settings"]) == [""]
    assert list(summary([])) == list(result)


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("tasks", TASKS),
        ("methods", methods()),
        ("measures", MEASURES),
        ("protocols", PROTOCOLS),
        ("models", ("minilm", "tiny")),
        ("grids", ("istar_search",)),
    ],
)
def test_lists_have_everything(what, names, capsys):
    assert what in lists.LISTS
    assert tuple(lists.LISTS) == LISTS
    assert cli.main(["list", what]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in names)
    assert max(map(len, text.splitlines())) <= 120


def test_what_nobody_foresaw_has_an_exit_code_of_its_own(monkeypatch, capsys):
    monkeypatch.setitem(commands.COMMANDS, "list", lambda options: 1 / 0)
    assert cli.main(["list", "tasks"]) == 3
    assert capsys.readouterr().err.splitlines()[-1] == "ZeroDivisionError: division by zero"
