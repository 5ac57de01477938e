"""The fight against Vordt is hard but fair, and goes as his script says."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.players import make_player, run_fights
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight

FIGHTS = 200
VORDT = load_fight("vordt")


@cache
def results(name, **options):
    return run_fights(make_player(name, VORDT, FIGHTS, 1, **options), VORDT, FIGHTS, 2024)


@pytest.mark.parametrize(("name", "most"), [("idle", 0.0), ("random", 0.0), ("attack_spam", 0.02), ("roll_spam", 0.02)])
def test_no_simple_player_wins(name, most):
    assert results(name).win_rate <= most


def test_the_duellist_wins_some_and_timing_matters():
    assert 0.15 <= results("duellist").win_rate <= 0.8
    assert results("duellist", delay_s=0.1).win_rate <= results("duellist").win_rate / 2


def test_the_second_phase_begins_with_three_charges_and_the_breath():
    engine = SimEngine(VORDT, 8, phase=2)
    engine.reset(np.ones(8, np.bool_), standard_starts(8), np.arange(8, dtype=np.uint64))
    names = [move.name for move in VORDT.boss.moves]
    seen = [[] for _ in range(8)]
    before = np.zeros(8)
    for _ in range(220):
        engine.hidden["player_hp"] = 483.0
        engine.step(ACTION_CONTROLS[np.full(8, NOTHING)])
        for i, (move, move_s) in enumerate(zip(engine.fights["boss_move"], engine.fights["boss_move_s"], strict=True)):
            if VORDT.boss.moves[move].kind == "attack" and (
                not seen[i] or names[move] != seen[i][-1] or move_s < before[i]
            ):
                seen[i].append(names[move])
        before = engine.fights["boss_move_s"].copy()
    assert all(moves[:4] == ["charge", "charge", "charge", "breath"] for moves in seen)
