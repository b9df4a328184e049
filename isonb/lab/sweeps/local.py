"""Many runs side by side on this machine, each in its own process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from isonb.lab.sweeps.job import Job, execute
from isonb.lab.sweeps.outcomes import Outcome

__all__ = ["run_here"]

LOOK_EVERY = 0.5  # seconds; a wait without an end would hold up Ctrl-C
AGAIN = 2  # times that a run is taken up again after somebody else has ended it


def run_here(jobs: Sequence[Job], workers: int) -> Iterator[Outcome]:
    """The outcomes of the jobs as they end, ``workers`` at a time. Ctrl-C kills what runs; the rest comes as stopped.

    Threads do no more here than wait for the processes of the runs. Runs that another sweep has in hand are left for
    the end, so that two sweeps share the work. A run that somebody ended from outside is taken up again.
    """
    stop = threading.Event()
    ended_outside: Counter[str] = Counter()
    with ThreadPoolExecutor(workers) as threads:
        waiting: dict[Future[Outcome], Job] = {}
        left = {job.run_id for job in jobs}
        try:
            for job in jobs:
                waiting[threads.submit(execute, job, wait=False, stop=stop)] = job
            while waiting:
                ended, _ = wait(waiting, timeout=LOOK_EVERY, return_when=FIRST_COMPLETED)
                for future in ended:
                    job = waiting.pop(future)
                    status = future.result().status
                    ended_outside[job.run_id] += status == "stopped"
                    if status == "busy" or (status == "stopped" and ended_outside[job.run_id] <= AGAIN):
                        waiting[threads.submit(execute, job, wait=True, stop=stop)] = job
                    else:
                        yield future.result()
                        left.discard(job.run_id)
        except KeyboardInterrupt:
            stop.set()
            for future, job in waiting.items():  # every run ends within seconds
                left.discard(job.run_id)
                yield future.result()
            yield from (Outcome(name, "stopped") for name in left)
        finally:
            stop.set()
