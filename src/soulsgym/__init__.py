"""Souls boss fights as Gymnasium environments; importing this registers them."""

import logging

from soulsgym.envs.registry import ENCODED, IN_THE_GAME, SIMULATED, register_with_gymnasium
from soulsgym.packages import VERSION

__version__ = VERSION
available_envs = (*SIMULATED, *ENCODED, *IN_THE_GAME)


def set_log_level(level: int) -> None:
    """How much the package tells through Python's logging, such as `logging.INFO`."""
    logging.getLogger("soulsgym").setLevel(level)


register_with_gymnasium()
