"""papermill, saving the notebook as often as that is cheap.

papermill saves before and after every cell. A chapter has a hundred cells and megabytes of charts, and saving them took
longer than running it. Here a save waits until the last one has cost no more than a twentieth of the time since; the
end, good or bad, is always saved. Chapters run on a leash (:mod:`isonb.runtime.leash`), which takes this file without
importing isonb.
"""

from __future__ import annotations

import logging
import resource
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import papermill
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines

__all__ = ["NAME", "Engine", "Manager", "chapter"]

NAME = "isonb"
PATIENCE = 20  # so much longer than a save took must pass before the next


class Manager(NotebookExecutionManager):  # type: ignore[misc]  # papermill has no types
    """papermill's record of a running notebook, which saves less often."""

    cost = timedelta(0)

    def save(self, **kwargs: Any) -> None:
        """Save, unless the last save is too recent for what it cost and the notebook still runs."""
        began = self.now()
        if self.end_time is None and began < self.last_save_time + PATIENCE * self.cost:
            return
        super().save(**kwargs)
        self.cost = self.now() - began


def peak_of_children() -> float:
    """MiB that the largest process started here has held, of those that have ended: the kernel, once it is down."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit / 2**20


class Engine(NBClientEngine):  # type: ignore[misc]
    """papermill's engine with that record, which also keeps how much memory the kernel took."""

    @classmethod
    def execute_notebook(cls, nb: Any, kernel_name: str, output_path: Any = None, **options: Any) -> Any:
        """Run a notebook; ``options`` are those of papermill's own."""
        own = {name: options.pop(name) for name in ("progress_bar", "autosave_cell_every") if name in options}
        manager = Manager(nb, output_path=output_path, log_output=options.get("log_output", False), **own)
        manager.notebook_start()
        try:
            cls.execute_managed_notebook(manager, kernel_name, **options)
        finally:
            manager.nb.metadata["isonb_peak_mib"] = round(peak_of_children())
            manager.cleanup_pbar()
            manager.notebook_complete()
        return manager.nb


papermill_engines.register(NAME, Engine)


def chapter(job: Mapping[str, Any]) -> None:
    """Run the notebook ``source`` with ``parameters`` in the folder ``cwd`` and write ``target``."""
    logging.basicConfig(level="ERROR", format="%(message)s")
    from isonb.runtime.leash import sockets  # there already: nothing of isonb is imported for it

    options = {name: job[name] for name in ("parameters", "cwd")} | sockets()
    papermill.execute_notebook(
        job["source"], job["target"], engine_name=NAME, kernel_name="python3", progress_bar=False, **options
    )
