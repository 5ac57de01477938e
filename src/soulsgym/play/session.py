"""PlaySession: fights that a person plays tick by tick, and their recording."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soulsgym.actions import ACTION_CONTROLS, CONTROL, NO_DIRECTION, NOTHING, Button, Controls
from soulsgym.batch import seed_number
from soulsgym.envs.simulated import FightSettings, simulated_batch
from soulsgym.recordings.exact import simulation_of
from soulsgym.recordings.recording import Recording
from soulsgym.sim.engine import SimEngine
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.state import Fights, Outcome

ROLL_BACK = 12
"""The action nearest to a backstep, which is none of the twenty."""
FEWEST_RECORDS = 10
"""A fight that was left sooner is not worth keeping."""


class PlaySession:
    """One fight after the other, with the seeds `seed`, `seed` + 1 ...; call `begin` and then `tick` until it is over.

    Every fight is kept, with the control of each tick, so that it can be repeated to the last bit.
    """

    def __init__(self, settings: FightSettings, seed: int = 0) -> None:
        self.settings = settings
        self._batch = simulated_batch(settings)
        engine = self._batch.engine
        assert isinstance(engine, SimEngine)
        self._engine, self.spec = engine, engine.spec
        self._next_seed = seed
        self._done: list[tuple[int, Fights, npt.NDArray[np.int8]]] = []
        engine.tick(ACTION_CONTROLS[NOTHING : NOTHING + 1], 0)  # compiles, which must not happen in the fight
        self.begin()

    @property
    def fight(self) -> np.void:
        """The record as it is after the last tick."""
        return self._engine.fights[0]  # type: ignore[no-any-return]

    @property
    def is_over(self) -> bool:
        """Has somebody won?"""
        return bool(self.fight["outcome"] != Outcome.RUNNING)

    @property
    def seeds(self) -> list[int]:
        """Those of the fights that are kept."""
        return [seed for seed, _, _ in self._done]

    def begin(self) -> None:
        """Begin the next fight; the one before is kept as it is."""
        self.keep()
        self.seed, self._next_seed = self._next_seed, self._next_seed + 1
        self._batch.begin(seeds=np.array([seed_number(self.seed)]))
        self._tick = 0
        self._records, self._controls = [self._batch.record()], [_nothing()]
        self.dodged = self.hits = 0

    def tick(self, control: Controls) -> None:
        """Play one tick with what is held and pressed; nothing happens once the fight is over."""
        if self.is_over:
            return
        if self._tick == 0:
            self._controls.append(_nothing())
        self._controls[-1][self._tick] = control.view(np.int8)
        self._engine.tick(control, self._tick)
        self._tick = (self._tick + 1) % TICKS_PER_STEP
        if self._tick == 0 or self.is_over:
            record = self._batch.record()
            self._records.append(record)
            self._tick = 0
            self.dodged += int(record["dodged"][0] >= 0)
            self.hits += int(record["hit_by"][0] >= 0)

    def keep(self) -> bool:
        """Keep the running fight as it is; false for one that is too short or kept already."""
        records = getattr(self, "_records", [])
        if len(records) < FEWEST_RECORDS or (self._done and self._done[-1][0] == self.seed):
            return False
        self._done.append((self.seed, np.concatenate(records), np.array(self._controls[: len(records)], np.int8)))
        return True

    def recording(self) -> Recording | None:
        """All fights that were kept; None if there is none."""
        if not self._done:
            return None
        controls = np.concatenate([part for _, _, part in self._done])
        return Recording(
            np.concatenate([records for _, records, _ in self._done]),
            np.array([action_of(ticks) for ticks in controls], np.int64),
            np.repeat(np.arange(len(self._done)), [len(records) for _, records, _ in self._done]),
            simulation=simulation_of(self.settings, self.seeds),
            controls=controls,
        )

    def endings(self) -> Fights:
        """The last record of every fight that was kept."""
        return np.concatenate([records[-1:] for _, records, _ in self._done] or [self._engine.fights[:0]])


def action_of(ticks: npt.NDArray[np.int8]) -> int:
    """The one of the twenty actions nearest to what was done in the ticks of a step: a press, or the way last held."""
    pressed = ticks[ticks[:, 1] != Button.NONE]
    direction, button = pressed[0].tolist() if len(pressed) else (int(ticks[-1, 0]), int(Button.NONE))
    if button not in (Button.NONE, Button.ROLL):
        direction = NO_DIRECTION
    elif button == Button.ROLL and direction == NO_DIRECTION:
        return ROLL_BACK
    return int(np.flatnonzero(np.array((direction, button), CONTROL) == ACTION_CONTROLS)[0])


def _nothing() -> npt.NDArray[np.int8]:
    return np.tile(ACTION_CONTROLS[NOTHING : NOTHING + 1].view(np.int8), (TICKS_PER_STEP, 1))
