"""The prober: he goes where a blow may just reach him, and lets it come."""

import numpy as np

from soulsgym.actions import NOTHING, controls_of
from soulsgym.engine import standard_starts
from soulsgym.players.observation import distance_m
from soulsgym.players.registry import make_player
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.state import action_mask_of, observation_of

SPEC = load_fight("iudex")


def play(player, n=32, steps=400, seed=0):
    engine, everyone = SimEngine(SPEC, n), np.ones(n, np.bool_)
    engine.reset(everyone, standard_starts(n), np.arange(n, dtype=np.uint64) + np.uint64(seed))
    player.reset(everyone)
    for _ in range(steps):
        observation, mask = observation_of(engine.fights.copy()), action_mask_of(engine.fights)
        actions = player.act(observation, mask)
        engine.step(controls_of(actions))
        yield observation, actions, engine.fights
        over = engine.fights["outcome"] != 0
        if over.any():
            engine.reset(over, standard_starts(n))
            player.reset(over)


def test_he_only_walks_and_is_where_blows_end():
    distances, hits = [], 0
    for observation, actions, fights in play(make_player("prober", SPEC, 32, 3)):
        assert set(np.unique(actions)) <= {*range(8), NOTHING}
        attacks = observation["boss_animation"] < 16
        distances.append(distance_m(observation)[attacks])
        hits += int((fights["damage_taken"] > 0).sum())
    near = np.concatenate(distances)
    assert hits > 50
    assert (near < 3.0).mean() > 0.1  # Near and far, inside of the blows and out of them.
    assert (near > 5.0).mean() > 0.1


def test_he_goes_where_he_is_asked_to():
    wanted = {(1, name): (6.0, 6.2) for name in SPEC.boss_animations[:16]}
    player = make_player("prober", SPEC, 16, 3, wanted=wanted)
    aims = []
    for observation, _, _ in play(player, 16, 200):
        aims.append(player._stand_m[(observation["boss_animation"] < 16) & (player._side == 0)])
    aims = np.concatenate(aims)
    assert ((aims >= 5.4) & (aims <= 6.8)).all()


def test_the_same_seed_plays_the_same():
    first, second = (
        [actions.tolist() for _, actions, _ in play(make_player("prober", SPEC, 4, 9), 4, 60)] for _ in range(2)
    )
    assert first == second
