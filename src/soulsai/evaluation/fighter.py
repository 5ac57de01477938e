"""Fighters: whatever chooses actions in an evaluation, a trained policy or a script."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from soulsai.config.schema import DEFAULT_BOSS
from soulsgym.actions import NOTHING
from soulsgym.players import Player, make_player
from soulsgym.spec import load_fight
from soulsgym.state import Fights, Outcome, action_mask_of, observation_of

if TYPE_CHECKING:
    from soulsai.acting.policy import Policy
    from soulsgym.parts.actions import ActionSet
    from soulsgym.parts.encoders import Encoder

Flags = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]


class Fighter(Protocol):
    """Plays `n` fights side by side from their records."""

    def begin(self, fights: Fights, mask: Flags) -> None:
        """The fights of `mask` begin again: forget them. If their number changes, the mask holds all of them."""

    def act(self, fights: Fights) -> Int64s:
        """The next action, 0 to 19, of every fight; what it says for fights that are over is ignored."""


class ScriptedFighter:
    """A scripted player as a fighter against a boss.

    Players with randomness of their own (random, roll_spam, the duellist's errors) draw it for all fights together, so
    how they play a fight depends on how many are played beside it.
    """

    def __init__(self, name: str, seed: int = 0, *, boss: str = DEFAULT_BOSS, **options: Any) -> None:
        self._make = partial(make_player, name, load_fight(boss), seed=seed, **options)
        self._player: Player = self._make(n=1)
        self._number = 0

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget the fights of `mask`."""
        if len(fights) != self._number:
            self._player = self._make(n=len(fights))
            self._number = len(fights)
        self._player.reset(mask)

    def act(self, fights: Fights) -> Int64s:
        """What the player does, from the observation alone."""
        return self._player.act(observation_of(fights), action_mask_of(fights))


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

    def act(self, fights: Fights) -> Int64s:
        """The number of the action for every fight."""
        choosing = self._can_choose(fights)
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

    def _can_choose(self, fights: Fights) -> Flags:
        if not self._decisions:
            return self._everyone
        return np.asarray(action_mask_of(fights)[:, :NOTHING].any(axis=1))


class PhaseFighters:
    """One fighter per phase of the boss, the last one for all later phases.

    A fighter is told that a fight begins when its phase does, as it was when it was trained on that phase alone. What
    it says about fights in other phases is dropped.
    """

    def __init__(self, *fighters: Fighter) -> None:
        self._fighters = fighters
        self._turn: Int64s = np.zeros(0, np.int64)

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Everyone forgets the fights of `mask`."""
        for fighter in self._fighters:
            fighter.begin(fights, mask)
        if len(self._turn) != len(fights):
            self._turn = np.zeros(len(fights), np.int64)
        self._turn[mask] = self._turn_of(fights)[mask]

    def act(self, fights: Fights) -> Int64s:
        """The actions of those whose turn it is."""
        turn = self._turn_of(fights)
        new, self._turn = turn != self._turn, turn
        running = fights["outcome"] == Outcome.RUNNING
        actions = np.zeros(len(fights), np.int64)
        for index, fighter in enumerate(self._fighters):
            mine = turn == index
            if (new & mine).any():
                fighter.begin(fights, new & mine)
            if (running & mine).any():
                actions[mine] = fighter.act(fights)[mine]
        return actions

    def _turn_of(self, fights: Fights) -> Int64s:
        return np.clip(fights["phase"].astype(np.int64) - 1, 0, len(self._fighters) - 1)
