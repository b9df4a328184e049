"""A made-up text, and a small run on it that every test of pretraining can look at."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def story(paragraphs: int, seed: int = 0) -> list[str]:
    """A made-up text in which the last noun of a sentence repeats its first, so that context helps."""
    draw = random.Random(seed)
    nouns = ["cat", "gull", "farmer", "lantern", "river", "turnip", "bishop", "kettle"]
    verbs = ["follows", "paints", "forgets", "carries"]
    tell = "The old {0} {1} another {0}."
    return [" ".join(tell.format(draw.choice(nouns), draw.choice(verbs)) for _ in range(4)) for _ in range(paragraphs)]


@pytest.fixture(scope="session")
def tell() -> Callable[..., list[str]]:
    return story


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path_factory.mktemp("text")
    parquet.write_table(pa.table({"text": story(120)}), path / "train.parquet")
    (path / "validation.txt").write_text("\n".join(story(30, seed=1)))
    return path


@pytest.fixture(scope="session")
def small(text: Path) -> Callable[..., Path]:
    """Pretrains the smallest of models into a folder; options change what it does."""
    pytest.importorskip("transformers")
    from isonb.lab.pretraining.pretrain import pretrain

    size = {"layers": 1, "width": 16, "batch": 8, "length": 16, "vocabulary": 200}

    def run(out: Path, **changes: Any) -> Path:
        return pretrain(**{"text": text, "out": out, "steps": 12, "progress": False} | size | changes)

    return run


@pytest.fixture(scope="session")
def finished(small: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("run") / "toy", about="A made-up text, public domain.")


@pytest.fixture(scope="session")
def continued(small: Callable[..., Path], finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that began with the finished one, whose shape and vocabulary it keeps."""
    options = {"start": str(finished), "seed": 1, "layers": 3, "vocabulary": 64}
    return small(tmp_path_factory.mktemp("more") / "toy", steps=2, **options)
