"""Workers for the tests of the local transport; apart, because processes have to import it by name."""

import time

from soulsai.runtime.workers import watched
from soulsai.transport.links import Message
from soulsai.transport.local import LocalWorkerLink


def rows_of(sequence):
    return 1 + sequence % 7


def frame_of(worker, sequence, size):
    """Bytes from which it is seen whose they are, and that none is missing."""
    word = f"{worker}:{sequence};".encode()
    return (word * (size // len(word) + 1))[:size]


def play(life, connection, worker, size, pause_s):
    """Send messages until told to stop."""
    link = LocalWorkerLink(connection, worker, run="run")
    life.on_stop(link.stop)
    sequence = policy = 0
    with watched(link, life):
        while not link.stopping:
            life.touch()
            sequence += 1
            link.send(Message(worker, sequence, rows_of(sequence), frame_of(worker, sequence, size) + b"%08d" % policy))
            if (frame := link.newest()) is not None:
                policy = int(frame[:8])
            time.sleep(pause_s)
    if link.ended == "gone":
        raise SystemExit(1)
