"""The instrument in a browser: what the page computes is what isonb computes, and a move takes less than 100 ms."""

import contextlib

import numpy as np
import pytest
import torch
from browser import SET, needs_chromium, open_page
from sklearn.linear_model import Ridge

import isonb
from isonb.numerics.nearest import nearest_by_cosine
from isonb.transforms import PartialWhitening
from isonb_lab.data.corpus import Sentence, sentences
from isonb_lab.figures import instrument as instruments

pytestmark = [needs_chromium, pytest.mark.filterwarnings("ignore::isonb.FitWarning")]
PAGE = '<!doctype html><meta charset="utf-8"><body>{}</body>'
READ = """(root) => ({
  ...Object.fromEntries(
    [...root.querySelectorAll('[data-reading]')].map((one) => [one.dataset.reading, Number(one.dataset.value)])),
  near: [...root.querySelectorAll('li')].map((li) => [Number(li.dataset.row), Number(li.dataset.value)]),
})"""
MOVE = "(box, on) => { box.checked = on; box.dispatchEvent(new Event('input', {bubbles: true})); }"


@pytest.fixture
def opened(browser, tmp_path):
    """Opens the page of an instrument."""
    with contextlib.ExitStack() as stack:

        def enter(instrument):
            file = tmp_path / "instrument.html"
            file.write_text(PAGE.format(instrument._repr_html_()), encoding="utf-8")
            visit = stack.enter_context(open_page(browser, file))
            stack.callback(lambda: pytest.fail(str(visit.errors)) if visit.errors else None)
            return visit.page.locator(".isonb-instrument")

        yield enter


def nearest(x, p, off, pick):
    turned = PartialWhitening(p=p).fit(x.double()).transform(x.double())
    index, cosines = nearest_by_cosine(turned + (0 if off else x.double().mean(0)), 5)
    return list(zip(index[pick].tolist(), cosines[pick].tolist(), strict=True))


@pytest.mark.parametrize(("model", "views"), [("tiny", [False]), ("minilm", [False, True]), ("smollm2", [False, True])])
def test_the_page_reads_what_isonb_reads(opened, model, views):
    cloud = instruments.loud() if model == "smollm2" else instruments.pooled(model, [s.text for s in sentences()])
    root = opened(instruments.Instrument({model: cloud}, pick=7))
    for without in views:
        root.locator("[name=token]").evaluate(MOVE, without)
        x = cloud.without if without else cloud.vectors
        python = instruments.Instrument({model: instruments.Cloud(x, dims=cloud.dims)})
        for p, off in ((0, False), (0.5, False), (1, True), (-0.75, True)):
            root.locator("[name=off]").evaluate(MOVE, off)
            root.locator("[name=p]").evaluate(SET, str(p))
            read = root.evaluate(READ)
            reference = python.readings(model, p, keeps=not off) | {"near": nearest(x, p, off, 7)}
            for name, value in reference.items():
                if name in ("near", "classifier") and p == 1 and len(x) <= x.shape[1]:
                    continue  # points in as many directions, made round: rounding decides which are nearest
                assert np.asarray(read[name]) == pytest.approx(np.asarray(value), rel=1e-6, abs=1e-9), (name, p, off)


def test_its_classifier_leaves_each_sentence_out_once():
    corpus = [s for s in sentences() if s.topic in ("law", "kitchen", "music")]
    cloud = instruments.pooled("tiny", [s.text for s in corpus])
    instrument = instruments.Instrument({"tiny": cloud}, corpus)
    x = cloud.vectors.double()
    x = x - x.mean(0)
    squares = torch.linalg.svdvals(x).square()
    alpha = 0.01 * float(squares[squares > 1e-9].mean())
    topics, rows = np.array(instrument.data()["topics"]), x.numpy()
    right = []
    for i in range(len(rows)):
        rest = np.arange(len(rows)) != i
        scores = Ridge(alpha=alpha).fit(rows[rest], np.eye(3)[topics[rest]]).predict(rows[i : i + 1])
        right.append(scores.argmax() == topics[i])
    assert instrument.readings("tiny", 0)["classifier"] == pytest.approx(np.mean(right))


def script_seconds(processor):
    """The time that the page's scripts have had on a processor."""
    return next(
        m["value"] for m in processor.send("Performance.getMetrics")["metrics"] if m["name"] == "ScriptDuration"
    )


def test_a_move_of_a_thousand_points_takes_less_than_100_ms(opened):
    draw = torch.Generator().manual_seed(0)
    corpus = [Sentence(str(i), f"{i}", f"topic {i % 10}", "", str(i - 1) if i % 8 == 1 else None) for i in range(1000)]
    x = torch.randn(1000, 768, generator=draw) * torch.linspace(3, 0.1, 768) + 1
    root = opened(instruments.Instrument({"large": instruments.Cloud(x)}, corpus))
    processor = root.page.context.new_cdp_session(root.page)
    processor.send("Performance.enable", {"timeDomain": "threadTicks"})  # the machine may be busy
    before = script_seconds(processor)
    for p in ("0.5", "-0.5", "0.75", "0.25", "1"):
        root.locator("[name=p]").evaluate(SET, p)
    assert (script_seconds(processor) - before) / 5 < 0.1
    assert root.evaluate(READ)["isoscore"] == pytest.approx(
        float(isonb.isoscore(PartialWhitening().fit_transform(x.double()))), rel=1e-6
    )


def test_the_recorded_token_is_loud_and_its_space_has_all_dimensions():
    cloud = instruments.loud()
    for x, is_loud in ((cloud.vectors, True), (cloud.without, False)):
        ratio = float(isonb.participation_ratio(x.double()))
        read = instruments.Instrument({"smollm2": instruments.Cloud(x, dims=cloud.dims)}).readings("smollm2", 0)
        assert read["isoscore"] == pytest.approx((ratio - 1) / (cloud.dims - 1), rel=1e-6)
        assert (ratio < 1.1) == is_loud
