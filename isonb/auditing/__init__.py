"""What a cloud of vectors or a model is like, for those who have no question yet: defects, thresholds, remedies."""

from isonb.errors import needs

with needs("isonb.audit", "audit"):  # numpy, which torch may come without
    from isonb.auditing.asking import audit
    from isonb.auditing.comparing import compare
from isonb.auditing.comparison import Comparison
from isonb.auditing.defects import Finding
from isonb.auditing.fixing import Effect, Fix
from isonb.auditing.measured import Layer, Match, Reading
from isonb.auditing.reading import vectors_of
from isonb.auditing.reading.members import VectorsError
from isonb.auditing.remedies import Remedy
from isonb.auditing.report import Audit
from isonb.auditing.soundness import Check
from isonb.auditing.unrelated import Unrelated

__all__ = [
    "Audit",
    "Check",
    "Comparison",
    "Effect",
    "Finding",
    "Fix",
    "Layer",
    "Match",
    "Reading",
    "Remedy",
    "Unrelated",
    "VectorsError",
    "audit",
    "compare",
    "vectors_of",
]
