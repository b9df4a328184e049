"""A finding is proven before it is said: nothing false of sound vectors, nothing missed where it was planted."""

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest
import scipy.sparse
import torch
from sentence_transformers import SentenceTransformer

import isonb
from isonb import cli
from isonb.auditing import defects
from isonb.auditing.defects import copies
from isonb.auditing.rows import read
from isonb.errors import DegenerateError
from isonb.measures.neighbourhoods import Neighbours
from isonb.models.catalogue import EMBEDDED, embedded_folder
from isonb.numerics.nearest import nearest_by_cosine
from isonb_lab.data.corpus import sentences


def draw(seed=0):
    return np.random.default_rng(seed)


def findings(x, **more):
    return {item.name: item for item in isonb.audit(x, **more).findings}


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (draw().normal(size=(10_000, 16)), "float16"),
        (draw().choice([-1.0, 1.0], (10_000, 64)), "float32"),
        (draw().choice([-1.0, -0.0, 0.0], (10_000, 8)), "float32"),
        (2.0**40 + draw().integers(0, 1000, (10_000, 2)), "int64"),  # float32 would merge them
    ],
)
def test_repeats_are_those_that_numpy_counts(rows, kind):
    x = rows.astype(kind)
    x[[7, 9000]] = x[[3, 3]]
    values = read(x)
    _, first = np.unique(x, axis=0, return_index=True)
    want = np.setdiff1d(np.arange(len(x)), first)
    assert values.repeats.tolist() == [row for row in want if x[row].any()]
    assert {7, 9000} <= set(values.repeats.tolist())


@pytest.mark.parametrize("noise", [1e-7, 1e-5])
def test_near_copies_leave_the_dimension_alone_and_are_found(noise):
    x = draw().normal(size=(1500, 48)).astype("f4")
    again = x[:200] * (1 + noise * draw(1).normal(size=(200, 48)).astype("f4"))
    audits = [isonb.audit(item) for item in (x, np.concatenate([x, again]))]
    clean, mixed = (entry.value for audit in audits for entry in audit.readings if entry.measure == "two_nn")
    assert mixed == pytest.approx(clean, rel=0.02)
    report = findings(np.concatenate([x, again]))
    assert "400 rows" in report["near duplicates"].text
    near = Neighbours(torch.from_numpy(np.concatenate([x, again])), 10)
    assert copies(near).tolist() == [False] * 1500 + [True] * 200


def test_the_measures_themselves_drop_neighbours_below_rounding():
    x = torch.randn(1000, 24, generator=torch.Generator().manual_seed(0))
    near, exact = (torch.cat([x, x[:300] * (1 + noise)]) for noise in (2e-7, 0))
    assert not torch.equal(near, exact)
    for dimension in (isonb.two_nn, isonb.mle_dimension):
        assert dimension(near).item() == pytest.approx(dimension(exact).item(), rel=1e-3)
    with pytest.raises(DegenerateError):
        isonb.two_nn(torch.ones(50, 4) * (1 + 1e-7 * torch.rand(50, 4, generator=torch.Generator().manual_seed(1))))


def test_rows_of_few_dimensions_or_far_away_are_no_near_duplicates():
    assert "near duplicates" not in findings(draw().normal(size=(3000, 2)))
    assert "near duplicates" not in findings(1000 + draw().normal(size=(500, 24)))


TIED = {
    "signs": draw().choice([-1.0, 1.0], (1500, 32)),
    "one-hot": np.eye(50)[draw().integers(0, 50, 1500)],
    "bags of words": np.stack([np.bincount(draw(i).choice(200, 3, False), minlength=200) for i in range(1500)]),
    "copies": np.concatenate([np.repeat(draw().normal(size=(1, 64)), 60, 0), draw(1).normal(size=(1440, 64))]),
}


@pytest.mark.parametrize("case", TIED)
def test_ties_make_no_hubs(case):
    assert "hubs" not in findings(TIED[case].astype("f4"))


@pytest.mark.parametrize("times", [0.01, 1.001, 100.0])
def test_rows_that_point_the_same_way_are_near_duplicates_at_any_length(times):
    half = draw().normal(size=(250, 24))
    alike = findings(np.concatenate([half, -half, times * half[:5], -times * half[:5]]))["near duplicates"]
    assert "20 rows" in alike.text
    assert set(range(5)) < set(alike.rows)


@pytest.mark.parametrize(("shift", "searches"), [(0.0, 1), (1.0, 3)])
def test_a_second_and_a_third_search_are_made_where_they_may_change_a_finding(shift, searches, monkeypatch):
    clouds = []
    monkeypatch.setattr(defects, "nearest_rows", lambda x: clouds.append(x) or nearest_by_cosine(x, 11))
    assert ("hubs" in findings(draw().normal(size=(1000, 64)) + shift)) == (shift > 0)
    assert len(clouds) == searches


def test_a_hub_stays_one_in_any_order():
    x = torch.nn.functional.normalize(torch.randn(600, 24, generator=torch.Generator().manual_seed(0)), dim=-1)
    x[:, 0] += 0.9
    x[5] = x.mean(0)
    order = torch.randperm(600, generator=torch.Generator().manual_seed(1))
    hubs = findings(x, texts=[f"text {i}" for i in range(600)])["hubs"]
    assert hubs.rows[0] == 5
    assert hubs.examples[0].startswith('"text 5", of ')
    assert order[findings(x[order])["hubs"].rows[0]] == 5
    assert hubs.severity == "warning"


def test_the_advice_about_hubs_is_tried_first():
    """Centring ends hubs that a common direction makes; it can't end those of a centred cloud."""
    shifted = torch.randn(600, 64, generator=torch.Generator().manual_seed(0)) + 1
    assert findings(shifted)["hubs"].advice.startswith("Look at these rows. Centring would end it; labelled pairs")
    x = torch.nn.functional.normalize(torch.randn(600, 24, generator=torch.Generator().manual_seed(0)), dim=-1)
    sides = torch.cat([x + torch.eye(24)[0], x - torch.eye(24)[0]])
    sides[[5, 700]] = torch.stack([sides[:600].mean(0), sides[600:].mean(0)])
    report = isonb.audit(sides)
    (hubs,) = [item for item in report.findings if item.name == "hubs"]
    assert set(hubs.rows[:2]) == {5, 700}
    assert "doesn't help" in hubs.advice


@pytest.mark.parametrize(("offset", "severity"), [(1.73, "note"), (20.0, "warning")])
def test_a_scale_that_starts_high_is_no_warning_until_all_rows_are_nearly_one(offset, severity):
    """Encoders that work have mean cosines up to 0.9, as E5."""
    topics = torch.randn(400, 64, generator=torch.Generator().manual_seed(0)).repeat(5, 1)
    noise = torch.randn(2000, 64, generator=torch.Generator().manual_seed(1))
    report = isonb.audit(0.6 * topics + 0.8 * noise + offset)
    assert report.values()["mean cosine"] == pytest.approx(offset**2 / (1 + offset**2), abs=0.01)
    (shift,) = [item for item in report.findings if item.name == "shift"]
    assert shift.severity == severity
    assert report.ok == (severity == "note")


def test_a_spread_that_is_not_round_is_no_warning():
    scales = torch.tensor([1.0] * 4 + [0.02] * 60)
    report = isonb.audit(torch.randn(2000, 64, generator=torch.Generator().manual_seed(0)) * scales)
    (stretched,) = [item for item in report.findings if item.name == "stretched"]
    assert stretched.severity == "note"


def test_a_sound_encoder_on_real_texts_has_no_warning():
    first = list(dict.fromkeys(sentence.text for sentence in sentences()))
    texts = [*first, *(f"{a} {b}" for a, b in zip(first, first[7:], strict=False))]
    sound = SentenceTransformer(str(embedded_folder(EMBEDDED["minilm"])[0]), device="cpu").encode(texts)
    assert {item.severity for item in isonb.audit(sound).findings} == {"note"}


LARGE = {
    "timestamps": lambda x: np.concatenate([x, (1.7e9 + draw(1).integers(0, 10**7, (len(x), 1))).astype("f4")], 1),
    "ids": lambda x: np.concatenate([x, np.arange(1, len(x) + 1, dtype="f4")[:, None] * 2000], 1),
    "offset": lambda x: x + np.float32(1e6),
    "small steps": lambda x: x.astype("f8") * 1e-9 + 3e6,
}


@pytest.mark.parametrize("case", LARGE)
def test_what_changes_is_not_called_unchanging(case):
    x = LARGE[case](draw().normal(size=(1000, 24)).astype("f4"))
    dead = {i for i in range(x.shape[1]) if len(np.unique(x[:, i])) == 1}
    assert set(findings(x, sample=200).get("dead dimensions", isonb.auditing.Finding("", "", "")).dims) == dead


def test_dimensions_are_counted_before_they_are_cut():
    x = draw().normal(size=(400, 900)).astype("f4")
    x[:, :30] *= 20
    loud = findings(x)["outlier dimensions"]
    assert "30 dimensions of 900" in loud.text
    assert sorted(loud.dims) == list(range(30))
    share = (x[:, :30].astype("f8") ** 2).sum() / (x.astype("f8") ** 2).sum()
    assert f"{share:.0%} of all" in loud.text
    assert loud.severity == "warning"


def test_sparse_vectors_have_no_loud_and_no_dead_dimension_that_warns():
    used = scipy.sparse.random(800, 200, density=0.04, random_state=0, format="csr", dtype="f4")
    report = findings(scipy.sparse.hstack([used, scipy.sparse.csr_matrix((800, 100))]))
    assert "outlier dimensions" not in report
    assert report["dead dimensions"].severity == "note"
    assert "100 dimensions of 300" in report["dead dimensions"].text


def test_very_wide_vectors_are_audited_without_their_shape():
    report = isonb.audit(scipy.sparse.random(120, 5000, density=0.01, random_state=0, format="csr", dtype="f4"))
    assert report.d == 5000
    assert "too many" in report.withheld
    assert {item.name for item in report.readings} == {"mean cosine", "common mean"}


def test_thresholds_have_the_digits_that_tell_them_apart():
    narrow = isonb.audit(1 + 1e-3 * draw().normal(size=(600, 24)))
    line = next(line for line in repr(narrow).splitlines() if line.startswith("random cosine  "))
    printed = [float(cell) for cell in line.split()[2:]]
    assert len(set(printed)) == len(printed)
    assert max(printed) < 1


STEPS = {
    "NaN rows": lambda x: np.where(np.isin(np.arange(600), [5, 77])[:, None], np.nan, x + 1).astype("f4"),
    "integers": lambda x: (x * 100 + 100).astype("i4"),
    "half": lambda x: (x + 1).astype("f2"),
    "big-endian": lambda x: (x + 1).astype(">f8"),
    "repeats and a dead dimension": lambda x: np.concatenate([np.ones((1200, 1)), np.tile(x + 1, (2, 1))], 1),
    "loud": lambda x: x * np.r_[30.0, np.ones(23)],
}


@pytest.mark.parametrize("case", STEPS)
def test_the_next_steps_run_on_the_file_that_was_audited(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "my vectors.npz", a=STEPS[case](draw().normal(size=(600, 24))), b=np.eye(9))
    arguments = ["audit", str(tmp_path / "my vectors.npz"), "--name", "a", "--json", str(tmp_path / "a.json")]
    with redirect_stdout(io.StringIO()):
        assert cli.main(arguments) == 0
    steps = json.loads((tmp_path / "a.json").read_text())["next_steps"]
    with redirect_stdout(io.StringIO()) as output:
        exec("\n".join(steps), {"pairs": (range(500), range(100, 600), [0, 1] * 250)})
    assert "Usable" in output.getvalue()
    broken = case in ("NaN rows", "repeats and a dead dimension")
    assert ("fix=" in steps[0], "pairs=pairs" in steps[0]) == (broken, not broken)  # they alone tell what else helps
    if case == "repeats and a dead dimension":
        assert np.load("fixed.npy").shape == (600, 24)
