"""One thread (the suite runs in parallel processes), property tests without clock and luck, and a model to read."""

import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
os.environ["ISONB_CORES"] = "1"  # a chapter that runs in a test starts no processes for its trainings: cores are taken
settings.register_profile(
    "isonb", deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("isonb")

MATHS = ("barcodes", "layers", "losses", "measures", "numerics", "streaming", "transforms")

collect_ignore_glob = ["*conftest.py"]  # plugins, not modules to look for doctests in


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small random BERT, made once; tests must not change it."""
    from tests.lab import random_models  # with its libraries, which most tests do without

    return str(random_models.save("bert", tmp_path_factory.mktemp("models") / "bert"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, empty; no data are named otherwise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ISONB_DATA", raising=False)
    return tmp_path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests of the maths are units; the slowest come first, so that no core waits for one of them at the end."""
    tests = Path(__file__).parent
    for item in items:
        quick = not any(map(item.get_closest_marker, ("slow", "timed")))
        if quick and item.path.parent in [tests / room for room in MATHS]:
            item.add_marker("unit")
    items.sort(key=lambda item: -seconds(item.get_closest_marker("slow")))


def seconds(slow: pytest.Mark | None) -> float:
    return 0 if slow is None else slow.kwargs.get("seconds", 15)
