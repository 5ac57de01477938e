"""Workers for the tests of the local transport; apart, because processes have to import it by name."""

import time

from soulsai.transport.links import Parcel, Progress
from soulsai.transport.local import LocalWorkerLink


def rows_of(sequence):
    return 1 + sequence % 7


def frame_of(worker, sequence, size):
    """Bytes from which it is seen whose they are, and that none is missing."""
    word = f"{worker}:{sequence};".encode()
    return (word * (size // len(word) + 1))[:size]


def play(life, connection, worker, size, pause_s):
    """Send parcels until told to stop."""
    link = LocalWorkerLink(connection, worker, run="run", beat_s=0.1, touch=life.touch)
    life.on_stop(link.stop)
    sequence = policy = 0
    while not link.stopping:
        life.touch()
        sequence += 1
        link.send(Parcel(worker, sequence, rows_of(sequence), frame_of(worker, sequence, size)))
        if (frame := link.newest()) is not None:
            policy = int(frame[:8])
        link.report(Progress("playing", policy, steps=sequence))
        time.sleep(pause_s)
    link.close()
    if link.ended == "gone":
        raise SystemExit(1)
