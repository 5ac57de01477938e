"""Learners and workers in processes of this machine and of others, as a library: `Fleet` and `join`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from soulsai.runtime.fleet import Fleet
    from soulsai.runtime.remote import join
    from soulsai.runtime.serve import RedisOptions

__all__ = ["Fleet", "RedisOptions", "join"]


def __getattr__(name: str) -> Any:
    """Loaded when asked for: a process that only wants to be supervised does not pay for torch."""
    if name not in __all__:
        raise AttributeError(name)
    from soulsai.runtime import fleet, remote, serve

    return {"Fleet": fleet.Fleet, "RedisOptions": serve.RedisOptions, "join": remote.join}[name]
