"""Limits for CI: what breaks them, the exit codes of ``isonb run``, mistakes in one line, and the example workflow."""

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from processes import python

import isonb
from isonb import cli
from isonb.cli import audits
from isonb.cli.limits import LimitError, broken, check_names, limit
from isonb_lab.cli.commands import under

WORKFLOW = Path(isonb.__file__).resolve().parents[1] / "book" / "practice" / "audit_in_ci.yml"


@pytest.mark.parametrize(
    ("text", "value", "breaks"),
    [
        ("accuracy<0.8", 0.8, False),
        (" mean cosine > 5e-1 ", 0.51, True),
        ("accuracy<0.8", None, True),
        ("accuracy>0.8", float("nan"), True),
        ("accuracy<0.8", float("nan"), True),
    ],
)
def test_what_breaks_a_rule(text, value, breaks, capsys):
    rule = limit(text, "so")
    assert rule.broken_by(value) is breaks
    assert broken([rule], {rule.name: value}) is breaks
    assert (text in capsys.readouterr().err) is breaks


@pytest.mark.parametrize(
    ("read", "texts"),
    [
        (under, ["accuracy", "=0.8", "accuracy=", "accuracy=high", "accuracy<0.8"]),
        (lambda text: limit(text, "so"), ["accuracy", "accuracy<", "<0.8", "accuracy<1.2.3", "accuracy=0.8"]),
    ],
)
def test_an_odd_rule_is_refused(read, texts):
    for text in texts:
        with pytest.raises(LimitError, match=r"--fail-(on must be so|under must be NAME=NUMBER); got"):
            read(text)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(LimitError, match=r"'acuracy'. The nearest are accuracy"):
        check_names([under("acuracy=0.8")], {"accuracy": 0.9, "f1": 0.8})


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (["--fail-under", "accuracy=0.7"], 0),
        (["--fail-under", "accuracy=0.8"], 1),
        (["--fail-on", "accuracy>0.8"], 0),
        (["--fail-on", "accuracy>0.8", "--fail-under", "accuracy=0.76"], 1),
        (["--fail-on", "end.cls.isoscore<0.1"], 1),  # undefined, so it can't be known to hold
        (["--fail-under", "accuracy=high"], 2),
        (["--fail-on", "accuracy"], 2),
        (["--fail-under", "f7=0.5"], 2),
    ],
)
def test_exit_codes_of_a_run(executed, text, code, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "--protocol", "smoke", *text]) == code
    output = capsys.readouterr().err
    assert output.count("\n") == (code > 0)
    assert ("broken" in output) == (code == 1)
    assert bool(executed) == (text[-1] not in ("accuracy=high", "accuracy"))  # what can't be read is told first


def steps():
    """The commands of the example workflow that call isonb."""
    result = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    ran = [step.get("run", "").replace("\\\n", "") for job in result["jobs"].values() for step in job["steps"]]
    return [line for run in ran for line in run.splitlines() if line.startswith("isonb ")]


@pytest.mark.slow
def test_the_example_workflow_runs(tmp_path):
    """Its commands on files of the names that it has, with the model that comes along; a rule too strict ends it."""
    from isonb_lab.data.corpus import sentences

    texts = [sentence.text for sentence in sentences()]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    frame = pd.DataFrame({"text": texts, "label": ["long" if len(text) > 60 else "short" for text in texts]})
    frame.to_csv(tmp_path / "reviews.csv", index=False)
    audit, run = steps()
    for line in (audit, run):
        python("-P", "-m", *shlex.split(line), cwd=tmp_path)
    assert (tmp_path / "report.html").is_file()
    strict = [sys.executable, "-P", "-m", *shlex.split(run), "--fail-under", "accuracy=1.01"]
    done = subprocess.run(strict, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("broken    accuracy<1.01 (it is ")) == (1, True)


def test_a_rule_may_name_whatever_a_report_has():
    """Names are checked before anything is measured: by lists, which must hold what reports then say."""
    x = np.random.default_rng(0).normal(size=(40, 12))
    for report, compared in ((isonb.audit(x), False), (isonb.compare(x, x[:, ::-1].copy()), True)):
        names = report.values()
        assert len(names) > 10
        audits._check_rules([limit(f"{name}>0", "a rule") for name in names], compared)
