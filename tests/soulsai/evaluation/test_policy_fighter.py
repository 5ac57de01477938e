"""A trained policy is judged by exactly the game it was trained on: the evaluation stands and falls with this."""

import zlib

import numpy as np
import pytest

from soulsai.config import load_preset, with_settings
from soulsai.evaluation.evaluate import EvaluationSettings, play_steps
from soulsai.evaluation.fighter import PolicyFighter
from soulsai.learning.wiring import build_fighter, build_world
from soulsgym.actions import NOTHING
from soulsgym.engine import standard_starts
from soulsgym.parts.actions import make_actions
from soulsgym.parts.encoders import make_encoder
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.state import Outcome

N, LIMIT = 6, 400
WEAK = ["starts.mid_fight=0.8", "starts.boss_hp_share=[0.05, 0.2]", "starts.player_hp_share=[0.1, 0.6]"]
CASES = {
    "default": ["fight.randomize=0.0"],
    "randomized with history": ["fight.randomize=1.0", "encoder.history=3"],
    "fewer actions": ["actions.preset=reduced", "encoder.name=soulsai74"],
    "attack or wait": ["actions.names=['light attack', 'nothing']"],
    "every step": ["fight.decisions=false", "encoder.history=2"],
    "without masks": ["actions.masks=false"],
    "no hit": ["fight.no_hit=true"],
}


class Fickle:
    """Chooses another open action whenever a single bit of what it sees is different."""

    def choose(self, observations, masks):
        chosen = [
            int(np.flatnonzero(mask)[zlib.crc32(seen.tobytes()) % int(mask.sum())])
            for seen, mask in zip(observations, masks, strict=True)
        ]
        return np.array(chosen, np.int64)


def trained_on(world, policy, masks):
    """What the greedy policy does in the first fights: {(fight, step): action}, the last records, and who won."""
    actions, endings, won = {}, np.zeros(N, world.batch.engine.fights.dtype), np.zeros(N, np.bool_)
    playing = np.ones(N, np.bool_)
    while playing.any():
        steps = world.batch.engine.fights["step"].copy()
        chosen = policy.choose(world.observations, world.masks if masks else np.ones_like(world.masks))
        numbers = world.batch.parts.actions.numbers(chosen)
        actions |= {(fight, int(steps[fight])): int(numbers[fight]) for fight in np.flatnonzero(playing)}
        step = world.step(chosen)
        over = playing & step.ended
        endings[over], won[over] = step.endings[over], step.won[over]
        playing &= ~step.ended
    return actions, endings, won


def evaluated_on(engine, fighter, settings):
    """The same, stepped one by one as an evaluation does; the engine's fights have begun."""
    actions = {}
    for before, chosen, playing in play_steps(engine, fighter, settings.step_limit, no_hit=settings.no_hit):
        for fight in np.flatnonzero(playing):
            actions[int(fight), int(before["step"][fight])] = int(chosen[fight])
    return actions, engine.fights


@pytest.mark.parametrize("case", list(CASES))
def test_evaluation_plays_the_game_of_training(case):
    settings = ["fight.variants=['standard']", f"fight.number={N}", "ppo.minibatch=16", f"fight.step_limit={LIMIT}"]
    config = with_settings(load_preset("smoke"), [*settings, *WEAK, *CASES[case]])
    policy = Fickle()
    world = build_world(config)
    world.reset(11)
    spec = load_fight("iudex")
    engine = SimEngine(spec, N, changes=True, randomize=config.fight.randomize)
    engine.restore(world.batch.engine.snapshot())
    played = EvaluationSettings(
        "iudex", "standard", 1, True, config.fight.randomize, False, LIMIT, config.fight.no_hit, 0, N
    )

    trained, endings, won = trained_on(world, policy, config.actions.masks)
    evaluated, last = evaluated_on(engine, build_fighter(config, policy), played)

    decided = {key: action for key, action in evaluated.items() if key in trained}
    # At the step limit the world may have merged a few steps more than an evaluation plays.
    within = {key: action for key, action in trained.items() if key[1] < LIMIT}
    assert decided == within
    assert {action for key, action in evaluated.items() if key not in trained} <= {NOTHING}
    assert len(set(within.values())) > 1
    for fight in np.flatnonzero(endings["step"] <= LIMIT):
        assert won[fight] == (last["outcome"][fight] == Outcome.WON)
        if not config.fight.no_hit:  # where an evaluation stops at the hit, the world at the next decision
            for name in ("outcome", "step", "taken_total", "dealt_total", "player_hp", "boss_hp", "player_pose"):
                assert np.array_equal(endings[name][fight], last[name][fight]), name


class Noting:
    """Notes what it is shown and always takes the last open action."""

    def __init__(self):
        self.seen, self.open = [], []

    def choose(self, observations, masks):
        self.seen.append(observations.copy())
        self.open.append(masks.copy())
        return masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)


def begun(n, **options):
    spec = load_fight("iudex")
    engine = SimEngine(spec, n)
    engine.reset(np.ones(n, np.bool_), standard_starts(n), np.arange(n, dtype=np.uint64))
    policy = Noting()
    actions = make_actions(names=("walk F", "roll B", "light attack"))
    fighter = PolicyFighter(policy, lambda number: make_encoder("player", number, spec), actions, **options)
    fighter.begin(engine.fights, np.ones(n, np.bool_))
    return engine, policy, fighter


def test_it_looks_only_when_there_is_a_choice():
    engine, policy, fighter = begun(2, decisions=True)
    assert fighter.act(engine.fights).tolist() == [16, 16]
    engine.fights["action_mask"][1, :NOTHING] = 0
    assert fighter.act(engine.fights).tolist() == [16, NOTHING]
    assert [len(seen) for seen in policy.seen] == [2, 1]
    engine.fights["action_mask"][0, :NOTHING] = 0
    assert fighter.act(engine.fights).tolist() == [NOTHING, NOTHING]
    assert len(policy.seen) == 2


def test_without_decisions_it_always_chooses():
    engine, policy, fighter = begun(2, decisions=False)
    engine.fights["action_mask"][1, :NOTHING] = 0
    assert fighter.act(engine.fights).tolist() == [16, 16]
    assert policy.open[0].tolist() == [[True] * 3] * 2


def test_masks_are_shown_unless_unused():
    for masks, shown in ((True, [True, False, True]), (False, [True, True, True])):
        engine, policy, fighter = begun(1, decisions=True, masks=masks)
        engine.fights["action_mask"][0, 12] = 0
        fighter.act(engine.fights)
        assert policy.open[0].tolist() == [shown]


def test_another_number_of_fights_is_fine():
    engine, policy, fighter = begun(5, decisions=True)
    other, _, _ = begun(2, decisions=True)
    fighter.act(engine.fights)
    fighter.begin(other.fights, np.ones(2, np.bool_))
    assert fighter.act(other.fights).shape == (2,)
    assert np.array_equal(policy.seen[1], policy.seen[0][:2])
