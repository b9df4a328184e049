"""One cloud of real sentences: every view has all of them with their words, and directions are turned alike."""

import pytest
import torch
from support import normal

from isonb_lab.data.corpus import sentences
from isonb_lab.pages.charts.sentences import plane, sentence_clouds

SOME = sentences()[:40]
X = normal(40, 6) @ torch.diag(torch.tensor([5.0, 3.0, 1.0, 1.0, 0.5, 0.1], dtype=torch.float64))


def rows(chart):
    return [row for table in chart.to_dict()["datasets"].values() for row in table]


def test_a_plane_is_turned_onto_the_other_view():
    turn = torch.linalg.qr(normal(6, 6, seed=1)).Q
    assert torch.allclose(plane(X @ turn, onto=plane(X)), plane(X), atol=1e-9)
    assert plane(X).square().sum(0).argmax() == 0, "the widest direction first"


@pytest.mark.filterwarnings("ignore:Automatically deduplicated")  # as pages.setup does
def test_every_view_has_every_sentence_and_its_words():
    edges = torch.tensor([[0, 1], [2, 3]])
    chart = sentence_clouds({"as it is": X, "with noise": X + normal(40, 6, seed=2)}, SOME, edges={"with noise": edges})
    report = [row["sentence"] for row in rows(chart) if "sentence" in row]
    assert sorted(report) == sorted(2 * [s.text for s in SOME])
    assert sum("x2" in row for row in rows(chart)) == len(edges)
    assert max(abs(row["x"]) for row in rows(chart)) == pytest.approx(1)
