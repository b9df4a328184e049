"""What a cloud of vectors is like, for those who have vectors and no question yet: measures, defects, thresholds."""

from isonb.auditing.report import Audit, Finding, Reading
from isonb.auditing.vectors import audit

__all__ = ["Audit", "Finding", "Reading", "audit"]
