"""The compiled entry points, cached on disk.

Numba's cache looks at the file of the entry point alone and would go on running old code after a change elsewhere. Its
key contains what the entry point closes over, so each closes over a digest of all the sources it is compiled from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from soulsgym.compiling import njit
from soulsgym.sim.replay import label_duration, replay_boss, replay_player
from soulsgym.sim.reset import reset_fights
from soulsgym.sim.tick import step_fights


def _digest_of_sources() -> str:
    package = Path(__file__).parent.parent
    files = [
        package / "compiling.py",
        package / "state.py",
        package / "actions.py",
        *sorted((package / "spec").glob("*.py")),
    ]
    digest = hashlib.sha256()
    for file in (*files, *sorted((package / "sim").glob("*.py"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _compile_steps(digest: str) -> tuple[Callable[..., None], Callable[..., None]]:
    @njit(nogil=True, cache=True)
    def step_block(
        fights: Any, hidden: Any, controls: Any, tables: Any, skip: bool, low: int, high: int
    ) -> None:  # fmt: skip
        if len(digest) > 0:
            step_fights(fights, hidden, controls, tables, skip, low, high)

    @njit(nogil=True, cache=True)
    def reset_masked(
        fights: Any, hidden: Any, mask: Any, starts: Any, seeds: Any, seeded: bool, tables: Any,
        phase: int, changes: int, strength: float,
    ) -> None:  # fmt: skip
        if len(digest) > 0:
            reset_fights(fights, hidden, mask, starts, seeds, seeded, tables, phase, changes, strength)

    return step_block, reset_masked


def _compile_replay(digest: str) -> tuple[Callable[..., None], Callable[..., int], Callable[..., float]]:
    @njit(nogil=True, cache=True)
    def follow_player(
        fights: Any, controls: Any, blows: Any, roles: Any, boss_moves: Any, template: Any, state: Any, states: Any,
        scratch: Any, tables: Any, predictions: Any,
    ) -> None:  # fmt: skip
        if len(digest) > 0:
            replay_player(
                fights, controls, blows, roles, boss_moves, template, state, states, scratch, tables[0], predictions
            )

    @njit(nogil=True, cache=True)
    def follow_boss(
        fights: Any, states: Any, script: Any, template: Any, state: Any, scratch: Any, tables: Any, strikes: bool,
        steps: Any, hits: Any,
    ) -> int:  # fmt: skip
        count = 0
        if len(digest) > 0:
            count = replay_boss(fights, states, script, template, state, scratch, tables[0], strikes, steps, hits)
        return count

    @njit(nogil=True, cache=True)
    def time_label(
        template: Any, state: Any, tables: Any, move: int, link: int, links: int, away_m: float, longest_s: float
    ) -> float:
        shown_s = 0.0
        if len(digest) > 0:
            shown_s = label_duration(template, state, tables[0], move, link, links, away_m, longest_s)
        return shown_s

    return follow_player, follow_boss, time_label


step_block, reset_masked = _compile_steps(_digest_of_sources())
follow_player, follow_boss, time_label = _compile_replay(_digest_of_sources())
