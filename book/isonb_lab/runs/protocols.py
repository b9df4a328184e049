"""The protocols: values that a block of a grid starts from in place of the defaults; plain data."""

from __future__ import annotations

from typing import Any

from isonb.models.catalogue import EMBEDDED

# Values in place of the defaults, by experiment; doses have those of fine-tuning.
PROTOCOLS: dict[str, dict[str, dict[str, Any]]] = {
    "small": {},  # and BY_TASK
    "first": {},  # of the earliest recordings: it leaves minilm nearly untaught
    "smoke": {
        "finetune": {
            "train_examples": 64, "eval_examples": 48, "epochs": 1, "batch_size": 16, "max_length": 48,
            "doc_stride": 16, "validations": 1, "track_every": 2, "cloud_examples": 48,
        },
        "similarity": {"eval_examples": 60, "tuning_steps": 3, "tuning_batch": 16},
        "synthetic": {
            "dim": 32, "sample_rows": 2000, "shrinkage_rows": 500, "sizes": "8 16 64 128", "repeats": 2,
            "size_rows": 200,
        },
    },
    "full": {"finetune": {"train_examples": None}},
    # For "tiny", which was pretrained without dropout and at a higher rate.
    "embedded": {"finetune": {"learning_rate": 1e-3, "epochs": 6, "dropout": 0.0}},
}  # fmt: skip


# What teaches minilm a task within about five minutes of one core: rows and passes, and the rate that was best on the
# held-out rows (book/experiments/calibration.yaml; head_to_head_tuning.yaml for sst2), before any method was run.
_WATCHED = {"holdout": 0.1, "validations": 3, "patience": 6, "track_every": 25}
BY_TASK: dict[str, dict[str, dict[str, Any]]] = {
    "small": {
        "sst2": _WATCHED | {"learning_rate": 2e-4, "train_examples": 4000, "epochs": 1, "validations": 6},
        "mrpc": _WATCHED | {"learning_rate": 1e-4, "train_examples": None, "epochs": 3},
        "cola": _WATCHED | {"learning_rate": 1e-4, "train_examples": None, "epochs": 2},
        "stsb": _WATCHED | {"learning_rate": 1e-4, "train_examples": 4000, "epochs": 2},
        "sst5": _WATCHED | {"learning_rate": 1e-4, "train_examples": 4000, "epochs": 3},
    }
}


def protocol_of(model: object, size: str = "") -> str:
    """The protocol of a run that names none: that of the model's entry in the catalogue, else "small".

    A grid's sizes "smoke" and "full" are named after theirs.

    >>> protocol_of("tiny"), protocol_of("google-bert/bert-base-uncased"), protocol_of("tiny", size="smoke")
    ('embedded', 'small', 'smoke')
    """
    if size in ("smoke", "full"):
        return size
    return EMBEDDED[model].protocol if isinstance(model, str) and model in EMBEDDED else "small"


def start(protocol: str, experiment: str, task: str) -> dict[str, Any]:
    """The values that a protocol starts a run from, in place of the defaults.

    >>> start("small", "doses", "mrpc")["learning_rate"], start("full", "similarity", "sts12")
    (0.0001, {})
    """
    like = "finetune" if experiment == "doses" else experiment
    return PROTOCOLS[protocol].get(like, {}) | BY_TASK.get(protocol, {}).get(task, {})
