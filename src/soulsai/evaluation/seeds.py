"""Seeds of fights: those of evaluations and those of training never meet.

Every fight is decided by a number of 64 bits. It is hashed from the user's seed, the purpose and the number of the
fight, so the purposes draw from streams that have nothing to do with each other, whatever seeds the user gives: an
agent is never judged by fights it was trained on. As nothing else goes into the hash, fight `i` of a seed is the same
fight however many there are and however they are dealt out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError

EVALUATION_SALT = 0x6576616C
"""The letters `eval`, so that the stream is anything but that of training."""


def evaluation_seeds(seed: int, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Seeds of the fights `first`, `first` + 1, ... of an evaluation."""
    if seed < 0:
        raise MisuseError(f"seed {seed} is negative; give 0 or more")
    sequences = (np.random.SeedSequence([EVALUATION_SALT, seed, fight]) for fight in range(first, first + count))
    return np.array([sequence.generate_state(1, np.uint64)[0] for sequence in sequences], np.uint64)
