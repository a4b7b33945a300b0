"""Work that is stopped at its n-th file operation: by a kill, an interrupt or a full disk.

The operations are counted by Python's audit events, in a forked process, so that nothing of the
work itself has to be replaced and a kill is a real one.
"""

import errno
import os
import sys

FILE_EVENTS = ("open", "os.", "shutil.", "ctypes.dlsym", "fcntl.flock")
KILLED, REFUSED, DONE, FOREIGN = 9, 2, 0, 1


class Stopped(BaseException):
    """An interrupt that no library catches, as the command raises it."""


def kill():
    os._exit(KILLED)


def interrupt():
    raise Stopped


def full_disk():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def injured(work, at, how, refusals=()):
    """Do `work` in a process of its own and injure it before its file operation number `at`.

    Gives how it ended: KILLED, REFUSED (one of `refusals`), DONE or FOREIGN (anything else).
    """
    child = os.fork()
    if child == 0:
        os._exit(_ending(work, at, how, refusals))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _ending(work, at, how, refusals):
    counted = 0
    watching = True

    def hook(event, _arguments):
        nonlocal counted, watching
        if not watching or not event.startswith(FILE_EVENTS):
            return
        counted += 1
        if counted == at:
            watching = False
            how()

    sys.addaudithook(hook)
    try:
        work()
    except Stopped:
        return KILLED
    except refusals:
        return REFUSED
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        return FOREIGN
    return DONE
