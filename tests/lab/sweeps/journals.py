"""The runs that tests of sweeps are about, and what their journal (fake_runs.py) says of them."""

from collections import Counter

from isonb.lab.runs.settings import resolve

RUNS = 20


def config(seed):
    return resolve({"task": "english_sentiment", "protocol": "smoke", "seed": seed})


def journal(out, first):
    path = out / "journal"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [words for words in lines if words[0] == first]


def finished(out):
    """How often each run has ended."""
    return Counter(words[1] for words in journal(out, "done"))
