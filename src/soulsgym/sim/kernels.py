"""The compiled entry points, cached on disk."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import njit
from soulsgym.sim.replay import label_duration, replay_boss, replay_player
from soulsgym.sim.reset import reset_fights
from soulsgym.sim.tick import step_fights, tick_fights


@njit(cache=True)
def step_block(fights: Any, hidden: Any, controls: Any, tables: Any, skip: bool, low: int, high: int) -> None:
    step_fights(fights, hidden, controls, tables, skip, low, high)


@njit(cache=True)
def tick_all(fights: Any, hidden: Any, controls: Any, tables: Any, tick: int) -> None:
    tick_fights(fights, hidden, controls, tables, tick)


@njit(cache=True)
def reset_masked(
    fights: Any, hidden: Any, mask: Any, starts: Any, seeds: Any, seeded: bool, tables: Any,
    phase: int, changes: int, strength: float,
) -> None:  # fmt: skip
    reset_fights(fights, hidden, mask, starts, seeds, seeded, tables, phase, changes, strength)


@njit(cache=True)
def follow_player(
    fights: Any, controls: Any, blows: Any, roles: Any, boss_moves: Any, template: Any, state: Any, states: Any,
    scratch: Any, tables: Any, predictions: Any,
) -> None:  # fmt: skip
    replay_player(
        fights, controls, blows, roles, boss_moves, template, state, states, scratch, tables[0], predictions
    )  # fmt: skip


@njit(cache=True)
def follow_boss(
    fights: Any, states: Any, script: Any, template: Any, state: Any, scratch: Any, tables: Any, strikes: bool,
    steps: Any, hits: Any,
) -> int:  # fmt: skip
    return replay_boss(fights, states, script, template, state, scratch, tables[0], strikes, steps, hits)


@njit(cache=True)
def time_label(
    template: Any, state: Any, tables: Any, move: int, link: int, links: int, away_m: float, longest_s: float
) -> float:
    return label_duration(template, state, tables[0], move, link, links, away_m, longest_s)
