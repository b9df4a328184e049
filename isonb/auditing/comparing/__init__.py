"""The same rows from elsewhere: what moved, what stayed, and how the two clouds are related."""

from isonb.auditing.comparing.clouds import compare
from isonb.auditing.comparing.told import Comparison, Difference

__all__ = ["Comparison", "Difference", "compare"]
