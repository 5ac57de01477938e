"""A trained network that plays fights from their records, greedily."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from soulsai.acting.policy import Policy
from soulsgym.actions import NOTHING
from soulsgym.parts.actions import ActionSet
from soulsgym.parts.encoders import Encoder
from soulsgym.state import Fights, action_mask_of

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class PolicyFighter:
    """Sees what it saw in training and plays the action it thinks best.

    With `decisions` it looks only when it has a choice, as in training, where steps without one were merged.
    """

    def __init__(
        self,
        policy: Policy,
        encoder: Callable[[int], Encoder],
        actions: ActionSet,
        *,
        decisions: bool,
        masks: bool = True,
    ) -> None:
        self._policy, self._make_encoder, self._actions = policy, encoder, actions
        self._decisions, self._use_masks = decisions, masks
        self._resize(1)

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget the fights of `mask`, which begin again; another number of fights than before is fine."""
        if len(fights) != len(self._last):
            self._resize(len(fights))
        self._encoder.begin(fights, mask)
        self._last[mask] = -1

    def _resize(self, n: int) -> None:
        self._encoder = self._make_encoder(n)
        self._observations = np.zeros((n, self._encoder.size), np.float32)
        self._open = np.ones((n, len(self._actions.indices)), np.bool_)
        self._last = np.full(n, -1, np.int64)
        self._everyone = np.ones(n, np.bool_)

    def act(self, fights: Fights) -> Numbers:
        """The number of the action for every fight."""
        choosing = self._choosing(fights)
        self._encoder.encode(fights, self._last, choosing, self._observations)
        if self._use_masks:
            self._actions.open(fights, self._open)
        which = np.flatnonzero(choosing)
        numbers = np.full(len(fights), NOTHING, np.int64)
        if len(which):
            chosen = self._policy.choose(self._observations[which], self._open[which])
            numbers[which] = self._actions.numbers(chosen)
            self._last[which] = numbers[which]
        return numbers

    def _choosing(self, fights: Fights) -> Flags:
        if not self._decisions:
            return self._everyone
        return np.asarray(action_mask_of(fights)[:, :NOTHING].any(axis=1))
