"""Runs compared with their matched control, paired by seed: what is a gain, what isn't, what could have shown."""

from isonb.lab.comparing.comparison import compare
from isonb.lab.comparing.power import plan_seeds
from isonb.lab.comparing.result import RunComparison
from isonb.lab.comparing.runs import CompareError

__all__ = ["CompareError", "RunComparison", "compare", "plan_seeds"]
