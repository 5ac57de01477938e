"""Environments on the simulator can be pickled and copied, also in the middle of a fight."""

from __future__ import annotations

from typing import Any, Self

from soulsgym.batch import FightBatch

KEPT = (
    "spec", "action_space", "single_action_space", "compute_reward",
    "_begun", "_last_action", "_np_random", "_np_random_seed",
)  # fmt: skip
"""Attributes that change after an environment was made, beside its fights; not every kind has all of them."""


class Pickled:
    """Pickled as what it was made with and the state of its fights; threads, windows and views are made again."""

    batch: FightBatch
    _begun: bool
    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember what it is made with."""
        made = super().__new__(cls)
        made._made_with = args, kwargs
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickle and copy need to make the same environment again."""
        kept = {name: self.__dict__[name] for name in KEPT if name in self.__dict__}
        fights = self.batch.state() if self._begun else None
        return _make, (type(self), *self._made_with), (kept, fights)

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, Any] | None]) -> None:
        """Go on where the other one was."""
        kept, fights = state
        self.__dict__.update(kept)
        if fights is not None:
            self.batch.restore(fights)
            self.__dict__["_np_random"] = self.batch.generator  # one stream: starts are drawn from it


def _make(kind: type[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return kind(*args, **kwargs)
