"""Every comparison by name: a suite takes ``small`` (the smallest sizes, to try the code) and gives rows."""

from collections.abc import Callable, Sequence

from tests.benchmarks import barcodes, growth, measures, memory, starting, training, whole_runs
from tests.benchmarks.harness import Peak, Row

SUITES: dict[str, Callable[[bool], Sequence[Row | Peak]]] = {
    **measures.SUITES,
    **barcodes.SUITES,
    **training.SUITES,
    **growth.SUITES,
    **memory.SUITES,
    **starting.SUITES,
    **whole_runs.SUITES,
}
