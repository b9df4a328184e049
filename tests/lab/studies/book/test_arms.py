"""Arms and tasks of the studies that no claim names: were they to change, no verdict would."""

import pytest
from support import columns_of

from isonb_lab.papers.studies import DESIGNS
from isonb_lab.runs.settings import resolve

STS = {"experiment": "similarity", "task": "sts13", "model": "minilm"}
TEST = {"task": "stsb_test", "model": "minilm"}
COLA, SST2 = ({"task": task, "model": "minilm"} for task in ("cola", "sst2"))


def istar(**options):
    return {"method": {"name": "istar", **options}}


@pytest.mark.parametrize(
    ("study", "config", "arm", "suite"),
    [
        ("head_to_head", SST2 | {"model": "tiny"}, "none", "SST-2 (tiny)"),
        ("head_to_head", SST2 | {"method": "whitening"}, None, "SST-2"),
        ("istar", COLA | {"method": "cosreg"}, "CosReg", "CoLA"),
        ("istar", SST2 | {"model": "tiny"} | istar(weight=0.1), "λ = +0.1", "SST-2 (tiny)"),
        ("istar", COLA | istar(weight=1, unbiased=True), "λ = +1, unbiased", "CoLA"),
        ("istar", COLA | istar(weight=-0.1, zeta=0), "λ = -0.1, ζ = 0", "CoLA"),
        ("istar", COLA | istar(weight=-0.1, layers=4), "λ = -0.1, layer 4", "CoLA"),
        ("figure_2", {"experiment": "synthetic", "tail": "student5"}, "Figure 2", "heavy tails, |S| = 75,000"),
        ("istar_doses", COLA | istar(include_pads=True), "λ = -1, padding as points", "CoLA"),
        ("layer_doses", COLA | {"experiment": "doses", "method": "isolayer", "head": "linear"}, "linear", "CoLA"),
        ("isolayer", SST2 | {"model": "tiny", "method": "isobn"}, "IsoBN", "SST-2 (tiny)"),
        ("shrink_the_longest", COLA | {"method": {"name": "entropy", "select": False, "weight": 0.1}},
         "all bars, weight 0.1", "CoLA"),
        ("plain_encoders", {"task": "english_span", "model": "tiny", "protocol": "embedded"}, "tiny, embedded", "span"),
        ("plain_encoders", STS | {"layers": "last"}, "plain, last", "STS-13"),
        ("softdecay", TEST | {"model": "tiny", "method": {"name": "whitening", "k": 64}}, "whitening, narrow",
         "tiny, STS-B"),
        ("softdecay", TEST | {"method": "soft_zca"}, None, "minilm, STS-B"),
    ],
)  # fmt: skip
def test_a_run_has_its_arm_and_its_place(study, config, arm, suite):
    design = DESIGNS[study]
    settings = columns_of(resolve(config))
    assert design.arm(settings) == arm
    assert design.suite(settings) == suite
