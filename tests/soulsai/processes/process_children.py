"""What the processes in the tests of the supervisor do; apart, because processes have to import it by name."""

import json
import os
import signal
import sys
import time

from soulsai.processes.supervisor import TERMINATE_S, Pauses, Supervisor, function, prepare_forks


def note(path, **values):
    with open(path, "a") as file:
        file.write(json.dumps({"pid": os.getpid(), "at_s": time.monotonic(), **values}) + "\n")


def good(me, path):
    """Touches its clock until it is told to stop, then says so."""
    note(path, index=me.index, heavy=sorted({"torch", "numba"} & set(sys.modules)), parent=os.getppid())
    while not me.stopping:
        time.sleep(0.02)
        me.touch()
    note(path, end=me.index)


def touching_first(me, path):
    """Only the first of them touches its clock: the others are watched by no clock, however slow the machine is."""
    note(path, index=me.index)
    while not me.stopping:
        time.sleep(0.02)
        if me.index == 0:
            me.touch()


def slow_to_stop(me, path):
    """Has something to finish, which takes longer than to terminate a process."""
    note(path, index=me.index)
    while not me.stopping:
        time.sleep(0.02)
        me.touch()
    time.sleep(TERMINATE_S + 1.0)
    note(path, end=me.index)


def told(me, path):
    """Ends by its callback, which is called once, also for one that comes late."""
    calls = []
    me.on_stop(lambda: calls.append("early"))
    note(path, index=me.index)
    while not calls:
        me.touch()
        time.sleep(0.02)
    me.on_stop(lambda: calls.append("late"))
    me.stop()
    note(path, calls=calls)


def dying(me, path):
    note(path, index=me.index)
    me.touch()
    os._exit(3)


def returning(me, path):
    note(path, index=me.index)


def failing(me, path):
    from soulsai.errors import TransportError

    note(path, index=me.index)
    raise TransportError("the bridge is out: take the ferry")


def broken(me, path):
    raise ZeroDivisionError("no bridge")


def working_once(me, path):
    """The first one does something useful."""
    if not os.path.exists(path):
        me.work()
    note(path, index=me.index)
    sys.exit(3)


def hanging(me, path):
    """Its other threads are well, and it has touched its clock once."""
    note(path, index=me.index)
    me.touch()
    time.sleep(60)


def never_there(me, path):
    note(path, index=me.index)
    time.sleep(60)


def touching_late(me, path):
    """Touches its clock only after it was told to."""
    note(path, index=me.index)
    while not os.path.exists(f"{path}.touch"):
        time.sleep(0.02)
    good(me, path)


def stubborn(me, path):
    """Does not stop, whatever it is asked."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(path, index=me.index)
    while True:
        me.touch()
        time.sleep(0.02)


def deaf(me, path):
    """Hears no signal, as in a long call of compiled code."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    good(me, path)


def plays_on_a_pipe(me, path, pipe):
    """Says something into the pipe it was started with."""
    pipe.send_bytes(str(me.index).encode())
    good(me, path)


def parent(path, target, forked=""):
    """A parent that goes on for ever, or ends without a word to its supervisor."""
    if forked:
        prepare_forks("soulsai.processes.orphan", {"SOULS_TEST": "loaded"})
    supervisor = Supervisor(
        function(globals()[target], lambda index: (path,), forked=bool(forked)),
        2,
        hang_s=30.0,
        say=print,
        pauses=Pauses(0.1),
    )
    supervisor.start()
    sys.stdin.readline()


if __name__ == "__main__":
    parent(*sys.argv[1:])
