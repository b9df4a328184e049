"""Methods by readers on models that people use: what ``real_models_plan.md`` fixes of its grid ``real_models.yaml``.

Runs of size small chose depth, rate, each method's option and the second task on held-out rows; a test chooses again
from their recording, by the rules of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TASK = "sst2_joint"  # what is tuned on
POOLING = {"smollm2": "mean_after_first", "mpnet": "mean"}
ISTAR = tuple({"name": "istar", "weight": weight} for weight in (1, 0.1, -0.1, -1))
# each method's options, the strongest first
OPTIONS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "entropy": tuple({"weight": weight} for weight in (1, 0.1, 0.01)),
    "softdecay": tuple({"alpha": alpha} for alpha in (-0.8, -0.4, -0.2)),
    "isolayer": tuple({"learning_rate": rate} for rate in (1e-3, 1e-4, 1e-5)),
    "isobn": tuple({"beta": beta} for beta in (1, 0.5, 0.25)),
    "cosreg": tuple({"weight": weight} for weight in (1, 0.3, 0.1)),
    "spectrum_control": tuple({"weight": weight} for weight in (1e-2, 1e-3, 1e-4)),
    "whitening": tuple({"k": k} for k in (None, 256, 64)),
}
ARMS = 1 + len(ISTAR) + len(OPTIONS)
FIRST_TOKEN = ("cosreg", "spectrum_control", "whitening")  # part B, beside plain training
SEEDS, SECOND_SEEDS = tuple(range(1, 11)), tuple(range(1, 7))
