"""Souls boss fights as Gymnasium environments; importing this registers them."""

from importlib.metadata import version

from soulsgym.envs.registry import SIMULATED, register_all

__version__ = version("soulsgym")
available_envs = tuple(SIMULATED)

register_all()
