"""Learners and workers in processes of this machine and of others, as a library: `Fleet` and `join`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from soulsai.runtime.fleet import Fleet
    from soulsai.runtime.remote import join
    from soulsai.runtime.serve import RedisOptions

__all__ = ["Fleet", "RedisOptions", "join"]


def __getattr__(name: str) -> Any:
    """Loaded when asked for: whoever joins, or only wants to be supervised, does not pay for torch."""
    if name not in __all__:
        raise AttributeError(name)
    module = {"Fleet": "fleet", "RedisOptions": "serve", "join": "remote"}[name]
    return getattr(import_module(f"soulsai.runtime.{module}"), name)
