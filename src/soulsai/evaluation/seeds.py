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
TRAINING_SALT = 0x7472616E


def evaluation_seeds(seed: int, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Seeds of the fights `first`, `first` + 1, ... of an evaluation."""
    return _seeds(seed, EVALUATION_SALT, range(first, first + count))


def training_seed(seed: int) -> int:
    """The number that training derives all its fights from."""
    return int(_seeds(seed, TRAINING_SALT, range(1))[0])


def _seeds(seed: int, salt: int, fights: range) -> npt.NDArray[np.uint64]:
    if seed < 0:
        raise MisuseError(f"seed {seed} is negative; give 0 or more")
    states = [np.random.SeedSequence([salt, seed, fight]).generate_state(1, np.uint64)[0] for fight in fights]
    return np.array(states, np.uint64)
