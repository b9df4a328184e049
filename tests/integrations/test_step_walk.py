"""The walk of the points from a step of the Trainer to the arithmetic of I-STAR: few files, and one look at values."""

import sys
from pathlib import Path

import test_trainer

import isonb
from isonb.losses import IStarLoss

ROOT = Path(isonb.__file__).parent


def test_points_reach_the_loss_through_eight_files_and_are_looked_at_once(tmp_path):
    walks = []

    def note(frame, event, arg):
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(ROOT) and ("", "shrunk_score") not in walks[-1]:
            name = frame.f_code.co_name
            walks[-1].append(("" if name == "shrunk_score" else str(file.relative_to(ROOT)), name))

    class Walked(test_trainer.IsotropyTrainer):
        """Notes what is called in its step."""

        def compute_loss(self, *args, **kwargs):
            walks.append([])
            sys.setprofile(note)
            try:
                return super().compute_loss(*args, **kwargs)
            finally:
                sys.setprofile(None)

    options = {"points": "tokens", "layers": "all", "penalty": IStarLoss()}
    test_trainer.train(tmp_path, trainer=Walked, **options)
    assert len(walks) == 2
    for walk in walks:
        assert walk[-1] == ("", "shrunk_score")  # arrived
        files = dict.fromkeys(file for file, _ in walk if file)
        assert "integrations/trainer.py" in files
        assert len(files) <= 8, list(files)
        assert walk.count(("checks.py", "finite")) == 1
