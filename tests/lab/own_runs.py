"""Runs of a reader: records of encoders under their names of the hub, with methods and weights of the papers."""

from pathlib import Path

from isonb_lab.runs.record import Record, write_record
from isonb_lab.runs.settings import resolve

BERT = "google-bert/bert-base-cased"
METHODS = {  # what each gains, in hundredths of accuracy
    "none": 0,
    ("istar", ("weight", -1), ("include_pads", True)): 6,
    ("istar", ("weight", -5), ("include_pads", True)): 5,
    ("istar", ("weight", 1), ("include_pads", True)): -6,
    ("cosreg", ("weight", 1), ("include_pads", True)): 2,
    ("entropy", ("weight", 0.5)): 3,
    "softdecay": 4,
    "isolayer": 1,
}


def write(folder: Path, *, tasks=("sst2", "rte"), model=BERT, methods=METHODS, seeds=range(3), **training) -> Path:
    """Write a record for each task, method and seed into ``folder/records``, as a sweep of one training does."""
    for task in tasks:
        for method, gain in methods.items():
            name, *options = [method] if isinstance(method, str) else method
            for seed in seeds:
                requests = {"task": task, "model": model, "method": {"name": name, **dict(options)}, "seed": seed}
                config = resolve(requests | {"group_by_length": False} | training)
                score = 0.80 + gain / 100 + 0.002 * seed * (1 + len(name) % 3)
                metrics = {"accuracy": score, "baseline.accuracy": 0.5}
                swapped = 0.02 * (seed == 1 and gain == 5)  # of two settings, so that ranks differ by seed
                metrics |= {f"end.tokens.{measure}": 0.1 + gain / 100 + 0.001 * seed + swapped for measure in MEASURES}
                read = 0.02 + gain / 1000 + 0.0001 * seed  # by the head: IsoScore-U, and so many of 768 directions
                metrics["end.features.isoscore_unbiased"] = read
                metrics["end.features.participation_ratio_unbiased"] = 1 + 767 * read
                metrics |= {f"start.cls.{measure}": 0.3 for measure in OF_CLS}
                metrics |= {f"end.cls.{measure}": read for measure in OF_CLS}
                metrics |= {"end.second.isoscore": read + 0.1} if name == "isolayer" else {}
                series = {"step.validation.accuracy": [(1, score - 0.1), (2, score)]}
                series |= {f"step.validation.cls.{measure}": [(1, 0.2), (2, read)] for measure in OF_CLS}
                series["layer.end.tokens.isoscore_star"] = [(k, 0.1 * k + gain / 100) for k in range(13)]
                write_record(
                    folder / "records", Record(config=config, metrics=metrics, series=series, manifest=MADE_ON)
                )
    return folder


MADE_ON = {"hardware": {"cpu": "made up", "bfloat16": False}, "data": {"model": "made up"}}
OF_CLS = ("anisotropy_1", "anisotropy_1_centered", "isoscore", "isoscore_star", "mean_cosine")
MEASURES = ("isoscore_star_all_layers", "isoscore_star", "mean_cosine", "mean_norm")
