"""The record of the benchmarks in tables and sentences, on a made-up record."""

import json

import pytest

from isonb.errors import InputError
from isonb_lab.figures import speed


def row(what, peer, ours, theirs, goal=None, *, yardstick=False, size="10 x 2", suite="some", verdict="", limit=""):
    least = min(ours), min(theirs)
    report = {"what": what, "size": size, "peer": peer, "goal": goal, "error": 1e-7, "allowed": 1e-4, "limit": limit}
    report |= {"yardstick": yardstick, "suite": suite, "ours_ms": least[0], "peer_ms": least[1], "verdict": verdict}
    report |= {"ratio": least[0] / least[1] if yardstick else least[1] / least[0], "parts": []}
    return report | {"ours_rounds_ms": ours, "peer_rounds_ms": theirs}


ROWS = [
    row("H0", "slow", [1.0, 1.5, 2.0], [8.0, 9.0, 8.5], 10.0, verdict="missed", limit="memory"),
    row("H0", "quick", [1.0, 1.5, 2.0], [0.5, 0.6, 0.5], None),
    row("score", "product", [3.0, 3.0, 3.0], [2.0, 2.5, 2.0], 2.0, yardstick=True, verdict="reached"),
    row("import", "import torch", [1.0], [50.0], suite="starting"),
    *(
        row("H0", "tree", [n**2 / 1e4], [n**3 / 1e6], size=f"{n} x 4", suite="growth_h0")
        for n in (100, 200, 400, 800, 1600)
    ),
]
PEAK = {"what": "H0", "size": "9 x 2", "mb": 1600.4, "bound_mb": 1000.0, "error": 0.0, "allowed": 1e-4}
PEAK |= {"limit": "all distances", "suite": "memory_h0", "verdict": "missed"}
ABOUT = {"sizes": "full", "python": "3.11", "torch": "2.1", "threads": 1, "processor": "a processor", "cores": 2}
ABOUT |= {"memory_gib": 8.0, "system": "Linux", "machine": "x86_64", "load": 0.1, "accelerator": None}
ABOUT |= {"packages": {"scipy": "1.0"}, "absent": ["fastcluster"]}


SIZE = {"what": "audit", "d": 4, "suite": "scaling", "error": 0.0, "verdict": ""}
READINGS = [
    SIZE | {"size": f"{n} x 4", "n": n, "seconds": n**2 / 1e6, "mb": n / 10, "input_mb": n / 5}
    for n in (1000, 2000, 4000, 8000)
]
READINGS += [SIZE | {"what": "CosReg", "suite": "kernels", "operators": 40, "waits": 0, "compiled": "one graph"}]


def recorded(tmp_path, *rows):
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(ABOUT | {"rows": rows, "memory": [PEAK], "readings": READINGS}), encoding="utf-8")
    return speed.load(path)


@pytest.fixture
def bench(tmp_path):
    return recorded(tmp_path, *ROWS)


def test_slopes_are_exponents(bench):
    (first,) = speed.slopes(bench)
    assert (first["measure"], first["d"], first["against"], first["largest n"]) == ("H0", 4, "tree", 1600)
    assert (first["isonb"], first["theirs"]) == pytest.approx((2.0, 3.0))
    assert first["times faster there"] == pytest.approx(16.0)


def test_the_fastest_peer_counts_alone(bench):
    assert bench.best[["what", "peer", "faster"]].to_numpy().tolist() == [["H0", "quick", 0.5]]
    assert "faster than the fastest other code in 0 of 1 comparisons" in speed.answer(bench)
    (first,) = speed.behind(bench)
    assert (first["fastest other code"], first["their time / ours"]) == ("quick", "0.50")


def test_a_million_rows_go_by_the_exponent(bench):
    (first,) = speed.million(bench)
    assert (first["exponent of n"], first["exponent of memory"], first["CPU time"]) == ("2.00", "1.00", "64 s")
    assert first["a million vectors, if it goes on so"] == "278 hours"
    assert speed.sent(bench) == [{"loss": "CosReg", "operators": 40, "waits": 0, "compiled": "one graph"}]


PARTS = [{"what": "product", "ms": 0.5, "needed": True}, {"what": "choice", "ms": 0.2, "needed": False}]


def test_of_a_row_behind_the_pieces_are_told_with_the_ratio_of_those_needed(tmp_path):
    worse = row("score", "quick", [2.0], [0.5]) | {"parts": PARTS}
    bench = recorded(tmp_path, row("H0", "quick", [1.0], [0.6], 0.8, verdict="missed") | {"parts": PARTS}, worse)
    first, second = speed.behind(bench)
    assert (first["comparison"], first["needed pieces alone"]) == ("score, 10 x 2", "1")
    assert (second["their time / ours"], second["needed pieces alone"]) == ("0.60", "1.2")
    assert second["share of each piece"] == "product 50%, choice 20%, the rest 30%"
    assert speed.goals(bench)[0]["what takes longest"] == "product, 50%"
    assert "The worst of them is score (0.25)." in speed.answer(bench)


def test_a_goal_is_printed_whole(tmp_path):
    step = row("step", "plain step", [1.15], [1.0], 1.05, yardstick=True, verdict="missed")
    assert speed.goals(recorded(tmp_path, step))[0]["goal"] == "≤ 1.05"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"rows": [], "accelerator": null}', '{"rows": [{}], "accelerator": null}']
)
def test_only_a_whole_record_is_read(tmp_path, text):
    path = tmp_path / "bench.json"
    if text:
        path.write_text(text)
    with pytest.raises(InputError, match="make bench"):
        speed.load(path)
