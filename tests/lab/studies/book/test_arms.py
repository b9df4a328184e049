"""The arms and tasks of the studies, by conditions on the columns of a run."""

import pytest
from support import columns_of

from isonb.lab.runs.settings import resolve
from isonb.lab.studies.design import study_file
from isonb.lab.studies.table import _suite

STS = {"experiment": "similarity", "task": "sts13", "model": "minilm"}
TEST = {"task": "stsb_test", "model": "minilm"}
COLA, SST2 = ({"task": task, "model": "minilm"} for task in ("cola", "sst2"))


def istar(**options):
    return {"method": {"name": "istar", **options}}


@pytest.mark.parametrize(
    ("study", "config", "arm", "suite"),
    [
        ("head_to_head", SST2, "none", "SST-2"),
        ("head_to_head", SST2 | {"model": "tiny"}, "none", "SST-2 (tiny)"),
        ("head_to_head", SST2 | istar(weight=-0.3), "I-STAR (lower)", "SST-2"),
        ("head_to_head", SST2 | istar(weight=1), "I-STAR (raise)", "SST-2"),
        ("head_to_head", SST2 | istar(weight=-0.3, layers=-1), "I-STAR (last layer)", "SST-2"),
        ("head_to_head", SST2 | {"method": "whitening"}, None, "SST-2"),
        ("istar", COLA, "none", "CoLA"),
        ("istar", COLA | {"method": "cosreg"}, "CosReg", "CoLA"),
        ("istar", COLA | {"method": {"name": "cosreg", "weight": -1}}, "CosReg -1", "CoLA"),
        ("istar", COLA | istar(weight=0.1), "λ = +0.1", "CoLA"),
        ("istar", COLA | istar(weight=1, unbiased=True), "λ = +1, unbiased", "CoLA"),
        ("istar", COLA | istar(weight=-1, zeta=0), "λ = -1, ζ = 0", "CoLA"),
        ("istar", COLA | istar(weight=-1, layers=3), "λ = -1, layer 3", "CoLA"),
        ("istar", COLA | {"max_grad_norm": 0}, "none, uncut", "CoLA"),
        ("istar", COLA | {"method": "isobn"}, None, "CoLA"),
        ("istar", {"experiment": "synthetic", "shrinkage_rows": 20000}, "Figure 2", "|S| = 20,000"),
        ("istar", {"experiment": "synthetic", "tail": "student5"}, "Figure 2", "heavy tails, |S| = 75,000"),
        ("istar_doses", COLA | istar(after=1), "λ = -1 from the second epoch", "CoLA"),
        ("istar_doses", COLA | istar(direction="random"), "λ = -1, random direction", "CoLA"),
        ("istar_doses", COLA | istar(zeta=0.8), "λ = -1, ζ = 0.8", "CoLA"),
        ("istar_doses", COLA | istar(include_pads=True), "λ = -1, padding as points", "CoLA"),
        ("istar_doses", COLA | istar(weight=-0.3), "λ = -0.3", "CoLA"),
        ("layer_doses", COLA | {"experiment": "doses", "method": "isolayer", "head": "linear"}, "linear", "CoLA"),
        ("isolayer", COLA | {"method": "isobn"}, "IsoBN", "CoLA"),
        ("isolayer", COLA | {"method": "cosreg"}, None, "CoLA"),
        ("shrink_the_longest", COLA | {"method": "entropy"}, "selected bars", "CoLA"),
        ("shrink_the_longest", COLA | {"method": {"name": "entropy", "select": False, "weight": 0.1}},
         "all bars, weight 0.1", "CoLA"),
        ("plain_encoders", COLA, "minilm", "CoLA"),
        ("plain_encoders", {"task": "english_span", "model": "tiny", "protocol": "embedded"}, "tiny, embedded", "span"),
        ("plain_encoders", COLA | {"method": "cosreg"}, None, "CoLA"),
        ("plain_encoders", STS, "plain, first-last", "STS-13"),
        ("plain_encoders", STS | {"layers": "last"}, "plain, last", "STS-13"),
        ("plain_encoders", STS | {"method": "softdecay"}, "SoftDecay", "STS-13"),
        ("softdecay", TEST, "plain, first-last", "minilm, STS-B"),
        ("softdecay", TEST | {"model": "tiny", "method": {"name": "whitening", "k": 64}}, "whitening, narrow",
         "tiny, STS-B"),
        ("softdecay", COLA | {"method": "softdecay"}, "SoftDecay", "CoLA"),
        ("softdecay", COLA, "none", "CoLA"),
        ("softdecay", TEST | {"method": "soft_zca"}, None, "minilm, STS-B"),
    ],
)  # fmt: skip
def test_a_run_has_its_arm_and_its_place(study, config, arm, suite):
    design = study_file(study).DESIGN
    settings = columns_of(resolve(config))
    assert design.arm(settings) == arm
    assert _suite(design, settings) == suite
