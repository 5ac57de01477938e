"""Souls boss fights as Gymnasium environments; importing this registers them."""

import logging
from importlib.metadata import version

from soulsgym.envs.registry import IN_THE_GAME, SIMULATED, register_all

__version__ = version("soulsgym")
available_envs = (*SIMULATED, *IN_THE_GAME)


def set_log_level(level: int) -> None:
    """How much the package tells through Python's logging, such as `logging.INFO`."""
    logging.getLogger("soulsgym").setLevel(level)


register_all()
