"""Runs compared with their matched control, paired by seed: what is a gain, what isn't, what could have shown."""

from isonb_lab.comparing.comparison import compare
from isonb_lab.comparing.power import plan_seeds
from isonb_lab.comparing.result import RunComparison
from isonb_lab.comparing.runs import CompareError

__all__ = ["CompareError", "RunComparison", "compare", "plan_seeds"]
