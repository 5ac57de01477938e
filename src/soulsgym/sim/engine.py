"""SimEngine: many simulated fights at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import CONTROL, Controls
from soulsgym.engine import START, Snapshot, check_one_for_each, refuse_out_of_range
from soulsgym.errors import MisuseError, StartError
from soulsgym.sim.hidden import HIDDEN
from soulsgym.sim.kernels import reset_masked, step_block, tick_all
from soulsgym.sim.pack import pack_into
from soulsgym.sim.tables import TABLES, TICKS_PER_STEP
from soulsgym.spec import FightSpec
from soulsgym.state import FIGHT, Fights, Outcome, copied

KIND = "sim-4"
"""Kind of a snapshot; the number rises when the meaning of HIDDEN changes."""
BLOCK = 64
"""The fewest fights that a thread takes at once. Up to four times as many are done before another thread is awake."""
FIRST, LAST = 0, 1
"""The ends of what is left to step."""


class SimEngine:
    """`n` fights of one moveset, or of several in blocks of neighbours: evenly, or as many as `counts` says for each.

    `phase` is where a fight begins; `changes` lets the boss go on to the next phase at its threshold. With `threads`
    that many step the fights together; the result is the same for any number.
    """

    missing_fields: tuple[str, ...] = ()

    def __init__(
        self,
        specs: FightSpec | Sequence[FightSpec],
        n: int = 1,
        *,
        counts: Sequence[int] | None = None,
        phase: int = 1,
        changes: bool = False,
        randomize: float = 0.0,
        threads: int = 1,
    ) -> None:
        files = (specs,) if isinstance(specs, FightSpec) else tuple(specs)
        if not files:
            raise MisuseError("there is no moveset to play; give one or more")
        spec = files[0]
        phases = len(spec.boss.phases)
        if n < 1:
            raise MisuseError(f"number of fights {n} is not possible; give 1 or more")
        if not 1 <= phase <= phases:
            raise MisuseError(f"phase {phase} is not there; {spec.boss.name} has phases 1 to {phases}")
        if not 0.0 <= randomize <= 1.0:
            raise MisuseError(f"randomize {randomize} is out of range; give 0.0 to 1.0")
        if threads < 1:
            raise MisuseError(f"threads {threads} is not possible; give 1 or more")
        self.spec = spec
        self.fights: Fights = np.zeros(n, FIGHT)
        self.fights["outcome"] = Outcome.DIED
        self.hidden: npt.NDArray[Any] = np.zeros(n, HIDDEN)
        self.counts = tuple(_counts(len(files), n, counts))
        self._blocks = np.repeat(np.arange(len(files)), self.counts)
        # Two tables for each block: the file that new fights begin on, and the one before, which some may still play.
        self.tables: npt.NDArray[Any] = np.zeros(2 * len(files), TABLES)
        self._specs: list[FightSpec | None] = [None] * len(self.tables)
        for block, file in enumerate(files):
            self._put(2 * block, file)
        self.hidden["table"] = self.hidden["next_table"] = 2 * self._blocks
        self._phase, self._changes, self._randomize = phase, changes, float(randomize)
        self._controls: Controls = np.zeros(n, CONTROL)
        self._helpers = threads - 1
        self._pool = ThreadPoolExecutor(self._helpers, "fights") if self._helpers else None

    def reset(
        self, mask: npt.NDArray[np.bool_], starts: npt.NDArray[Any], seeds: npt.NDArray[np.uint64] | None = None
    ) -> None:
        """Restart the fights of `mask`; without seeds each goes on with its own stream of randomness."""
        check_one_for_each("starts", starts, START, self.fights)
        seeded = seeds is not None
        given = np.zeros(len(self.fights), np.uint64) if seeds is None else seeds
        reset_masked(
            self.fights, self.hidden, mask, starts, given, seeded, self.tables,
            self._phase, int(self._changes), self._randomize,
        )  # fmt: skip

    def step(self, controls: Controls, *, skip: bool = False) -> None:
        """Advance every running fight by 0.1 s, and with `skip` on to where the player can act again."""
        check_one_for_each("controls", controls, CONTROL, self.fights)
        self._controls.view(np.uint16)[:] = controls.view(np.uint16)
        if self._pool is None:
            step_block(self.fights, self.hidden, self._controls, self.tables, skip, 0, len(self.fights))
        else:
            self._step_blocks(self._pool, skip)

    def tick(self, controls: Controls, tick: int) -> None:
        """Play tick 0 to 5 of a step, with what is held and pressed in this tick: it takes effect at once.

        For a person, who does not wait for the next step. The record is that of a whole step after the last tick, or
        when the fight is over; before, its time lies between two steps.
        """
        check_one_for_each("controls", controls, CONTROL, self.fights)
        if not 0 <= tick < TICKS_PER_STEP:
            raise MisuseError(f"tick {tick} is not in a step; give 0 to {TICKS_PER_STEP - 1}")
        self._controls.view(np.uint16)[:] = controls.view(np.uint16)
        tick_all(self.fights, self.hidden, self._controls, self.tables, tick)

    def replace(self, block: int, spec: FightSpec, *, all_begin: bool = False) -> bool:
        """Let new fights of a block begin on another moveset, while those that run keep theirs.

        False if some still play the one before the last: try again when they have ended. With `all_begin` what they
        play does not matter, since all fights are reset next.
        """
        own = self._blocks == block
        if not own.any():
            raise MisuseError(f"block {block} is not there; give 0 to {self._blocks[-1]}")
        other = int(self.hidden["next_table"][own][0]) ^ 1
        playing = own & (self.fights["outcome"] == Outcome.RUNNING) & (self.hidden["table"] == other)
        if playing.any() and not all_begin:
            return False
        self._put(other, spec)
        self.hidden["next_table"][own] = other
        return True

    def spec_of(self, fight: int) -> FightSpec:
        """The moveset that a fight is played on."""
        return self._specs[self.hidden["table"][fight]] or self.spec

    def snapshot(self) -> Snapshot:
        """Copy the state of all fights."""
        return Snapshot(KIND, copied(self.fights), copied(self.hidden), tuple(self._specs))

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot of the same number of fights."""
        if snapshot.kind != KIND:
            raise StartError(f"snapshot is of kind {snapshot.kind!r}, this simulator takes {KIND!r}; make it again")
        if (
            snapshot.hidden.shape != self.hidden.shape
            or snapshot.hidden.dtype != HIDDEN
            or snapshot.fights.dtype != FIGHT
        ):
            raise StartError(
                f"snapshot holds {len(snapshot.hidden)} fights, this engine {len(self.hidden)}; make them the same"
            )
        self._put_all(snapshot)
        # As bytes: the gaps between fields as well, so that equal states are equal to the last bit.
        self.fights.view(np.uint8)[:] = snapshot.fights.view(np.uint8)
        self.hidden.view(np.uint8)[:] = snapshot.hidden.view(np.uint8)

    def close(self) -> None:
        """End the threads; a later step does without them."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None

    def check_starts(self, starts: npt.NDArray[Any]) -> None:
        """Refuse starts that no fight can have; for what comes from outside."""
        boss, player, arena = self.spec.boss, self.spec.player, self.spec.arena
        limits = (
            ("phase", 0, len(boss.phases)),
            ("player_hp", 1, player.hp),
            ("player_sp", player.sp_floor, player.sp),
            ("boss_hp", 1, boss.hp),
        )
        refuse_out_of_range(starts, limits)
        for key in ("player_pose", "boss_pose"):
            for pose in np.unique(starts[key][~np.isnan(starts[key][:, 0])], axis=0):
                if not arena.contains(pose[0], pose[1]) or not abs(pose[2]) <= np.pi + 1e-6:
                    raise StartError(
                        f"start has {key} = {pose.tolist()}; give x, y inside the arena and a heading within -pi to pi"
                    )

    def _step_blocks(self, pool: ThreadPoolExecutor, skip: bool) -> None:
        """Step all fights: the caller takes blocks from the first on, the threads from the last, until they meet.

        So that nobody waits long for another, blocks get smaller towards the end; and since all begin at the same place
        in each step, most fights stay in the cache of one core.
        """
        left, lock = [0, len(self.fights)], Lock()

        def take(end: int) -> tuple[int, int]:
            with lock:
                low, high = left
                size = min(max((high - low) // (2 * self._helpers + 2), BLOCK), high - low)
                if end == FIRST:
                    left[FIRST] = high = low + size
                else:
                    left[LAST] = low = high - size
            return low, high

        def work(end: int) -> None:
            low, high = take(end)
            while low < high:
                step_block(self.fights, self.hidden, self._controls, self.tables, skip, low, high)
                low, high = take(end)

        helpers = [pool.submit(work, LAST) for _ in range(min(self._helpers, (len(self.fights) - 1) // (4 * BLOCK)))]
        work(FIRST)
        for helper in helpers:
            # A thread that has not woken up by now is not waited for: there is nothing left to do.
            if not helper.cancel():
                helper.result()

    def _put_all(self, snapshot: Snapshot) -> None:
        specs = snapshot.specs or self._specs
        tables = np.stack([snapshot.hidden["table"], snapshot.hidden["next_table"]])
        if (
            len(specs) != len(self.tables)
            or (tables // 2 != self._blocks).any()
            or any(specs[table] is None for table in np.unique(tables))
        ):
            raise StartError("snapshot deals out its fights among other movesets than this engine; make them the same")
        changed = {
            table: spec for table, spec in enumerate(specs) if spec is not None and spec is not self._specs[table]
        }
        for spec in changed.values():
            _refuse_unlike(self.spec, spec)
        for table, spec in changed.items():
            self._put(table, spec)

    def _put(self, table: int, spec: FightSpec) -> None:
        _refuse_unlike(self.spec, spec)
        pack_into(self.tables[table : table + 1], spec)
        self._specs[table] = spec


def _counts(files: int, n: int, given: Sequence[int] | None) -> Sequence[int]:
    if given is None:
        if files > n:
            raise MisuseError(f"{files} movesets are too many for {n} fights; give as many fights or more")
        return np.bincount(np.arange(n) * files // n, minlength=files).tolist()  # type: ignore[no-any-return]
    if len(given) != files or sum(given) != n or min(given) < 1:
        raise MisuseError(
            f"counts {list(given)} do not deal out {n} fights among {files} movesets; give 1 or more each"
        )
    return given


def _refuse_unlike(first: FightSpec, other: FightSpec) -> None:
    """Encoders, rewards and records know one player, one place and one list of names for all fights of an engine."""
    for what, mine, its in (
        ("player", first.player, other.player),
        ("arena", first.arena, other.arena),
        ("animations", first.player_animations, other.player_animations),
        ("animations", first.boss_animations, other.boss_animations),
        ("number of phases", len(first.boss.phases), len(other.boss.phases)),
        ("moves", [move.name for move in first.boss.moves], [move.name for move in other.boss.moves]),
    ):
        if mine is not its and mine != its:
            raise MisuseError(
                f"{other.boss_name} {other.variant} and {first.boss_name} {first.variant} differ in their {what}; "
                "fight them in engines of their own"
            )
