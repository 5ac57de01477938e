"""A boss who does one attack and nothing else."""

import numpy as np
import pytest

from soulsgym.actions import NOTHING, controls_of
from soulsgym.engine import standard_starts
from soulsgym.envs.simulated import FightSettings, fight_specs
from soulsgym.errors import MisuseError
from soulsgym.recordings.exact import simulation_of
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.spec.practice import attacks_of, only_attack, practice_phase

BOSSES = ("iudex", "vordt", "margit")


def attacks_seen(spec, phase, steps=250):
    """The attacks of the boss against somebody who only stands there and cannot die."""
    engine = SimEngine(spec, 4, phase=phase)
    engine.reset(np.ones(4, np.bool_), standard_starts(4), np.arange(4, dtype=np.uint64))
    seen = set()
    for _ in range(steps):
        engine.hidden["player_hp"] = spec.player.hp
        engine.step(controls_of(np.full(4, NOTHING)))
        seen |= set(engine.fights["boss_move"].tolist())
    moves = [spec.boss.moves[move] for move in seen]
    return {move.name for move in moves if move.kind == "attack"}


@pytest.mark.parametrize("boss", BOSSES)
def test_every_attack_that_an_act_begins_with_can_be_practised(boss):
    spec = load_fight(boss)
    thrown = {move.grab_move for move in spec.boss.moves if move.grab_move}
    firsts = {act.first_move for phase in spec.boss.phases for act in phase.acts} & set(attacks_of(spec.boss))
    for attack in sorted(firsts):
        seen = attacks_seen(only_attack(spec, attack), practice_phase(spec.boss, attack))
        assert attack in seen, attack
        assert seen <= {attack} | thrown, attack


def test_an_attack_that_only_follows_comes_with_its_lead():
    spec = load_fight("iudex")
    act = only_attack(spec, "delayed_thrust").boss.phases[0].acts[0]
    assert [link.move for chain in act.chains for link in chain.links][-1] == "delayed_thrust"
    seen = attacks_seen(only_attack(spec, "delayed_thrust"), 1)
    assert "delayed_thrust" in seen
    assert len(seen) == 1 + len(act.chains[0].links)


def test_the_phase_of_an_attack():
    boss = load_fight("iudex").boss
    assert practice_phase(boss, "thrust") == 1
    assert practice_phase(boss, "beast_tail") == 2


def test_an_attack_that_there_is_not():
    with pytest.raises(MisuseError, match="Iudex Gundyr has no attack 'thrsut' to practise, did you mean 'thrust'"):
        fight_specs(FightSettings("iudex", only="thrsut"))


def test_recordings_tell_practice_from_the_fight():
    whole, practice = (simulation_of(FightSettings("iudex", only=only), [1]) for only in ("", "thrust"))
    assert whole.data != practice.data
