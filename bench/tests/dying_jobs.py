"""Jobs that kill their process; in a module, since other processes import it by name."""

import os
import signal

from forecause_bench.runner import measured_job


def die_at_first(job, data, tries, deaths):
    """Leave a file for every try; die so many times, then do the job."""
    (tries / str(os.getpid())).touch()
    if len(list(tries.iterdir())) <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return measured_job(job, data)
