"""What the processes in the tests of the crew do; apart, because processes have to import it by name."""

import json
import os
import signal
import sys
import time

from soulsai.acting.crew import Crew, Pauses


def note(path, **values):
    with open(path, "a") as file:
        file.write(json.dumps({"pid": os.getpid(), "at_s": time.monotonic(), **values}) + "\n")


def good(life, path):
    """Touches its clock until it is told to stop, then says so."""
    note(path, index=life.index, heavy=sorted({"torch", "numba"} & set(sys.modules)))
    while not life.wait(0.02):
        life.touch()
    note(path, end=life.index)


def told(life, path):
    """Ends by its callback, which is called once, also for one that comes late."""
    calls = []
    life.on_stop(lambda: calls.append("early"))
    note(path, index=life.index)
    while not calls:
        life.touch()
        time.sleep(0.02)
    life.on_stop(lambda: calls.append("late"))
    life.tell()
    note(path, calls=calls)


def dying(life, path):
    note(path, index=life.index)
    life.touch()
    os._exit(3)


def returning(life, path):
    note(path, index=life.index)


def failing(life, path):
    from soulsai.errors import TransportError

    note(path, index=life.index)
    raise TransportError("the bridge is out: take the ferry")


def hanging(life, path):
    """Its other threads are well, and it has touched its clock once."""
    note(path, index=life.index)
    life.touch()
    time.sleep(60)


def never_there(life, path):
    note(path, index=life.index)
    time.sleep(60)


def touching_late(life, path):
    """Touches its clock only after it was told to."""
    note(path, index=life.index)
    while not os.path.exists(f"{path}.touch"):
        time.sleep(0.02)
    good(life, path)


def stubborn(life, path):
    """Does not stop, whatever it is asked."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(path, index=life.index)
    while True:
        life.touch()
        time.sleep(0.02)


def deaf(life, path):
    """Hears no signal, as in a long call of compiled code."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    good(life, path)


def plays_on_a_pipe(life, path, pipe):
    """Says something into the pipe it was started with."""
    pipe.send_bytes(str(life.index).encode())
    good(life, path)


def parent(path, target):
    """A parent that goes on for ever, or ends without a word to its crew."""
    crew = Crew(globals()[target], 2, arguments=lambda index: (path,), hang_s=30.0, say=print, pauses=Pauses(0.1))
    crew.start()
    sys.stdin.readline()


if __name__ == "__main__":
    parent(*sys.argv[1:])
