"""papermill, saving the notebook as often as that is cheap.

papermill saves before and after every cell. A chapter has a hundred cells and megabytes of charts, and saving them took
longer than running it. Here a save waits until the last one has cost no more than a twentieth of the time since; the
end, good or bad, is always saved. Run as a script, so that a child doesn't import isonb: ``engine.py IN OUT --engine
isonb ...``.
"""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import Any

from papermill.cli import papermill
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines

__all__ = ["NAME", "Engine", "Manager"]

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


class Engine(NBClientEngine):  # type: ignore[misc]
    """papermill's engine with that record."""

    @classmethod
    def execute_notebook(cls, nb: Any, kernel_name: str, output_path: Any = None, **options: Any) -> Any:
        """Run a notebook; ``options`` are those of papermill's own."""
        own = {name: options.pop(name) for name in ("progress_bar", "autosave_cell_every") if name in options}
        manager = Manager(nb, output_path=output_path, log_output=options.get("log_output", False), **own)
        manager.notebook_start()
        try:
            cls.execute_managed_notebook(manager, kernel_name, **options)
        finally:
            manager.cleanup_pbar()
            manager.notebook_complete()
        return manager.nb


papermill_engines.register(NAME, Engine)

if __name__ == "__main__":
    # Its starter ends it by SIGINT, which is ignored in all that a shell starts in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    papermill()
