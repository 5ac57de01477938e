"""Batches of fights: hand-worked on an engine that plays a script, and beside the simulator stepped one by one."""

from functools import partial

import numpy as np
import pytest

from soulsgym.actions import NOTHING
from soulsgym.batch import FightBatch
from soulsgym.engine import Snapshot
from soulsgym.errors import MisuseError
from soulsgym.parts import FightParts
from soulsgym.parts.actions import make_actions
from soulsgym.parts.encoders import make_encoder
from soulsgym.parts.endings import make_ending
from soulsgym.parts.rewards import make_reward
from soulsgym.parts.starts import make_starts
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.spec.population import Population
from soulsgym.state import FIGHT, Outcome

LINEAR = {"far": 0.0, "step": 0.01}
"""Rewards whose sum over several steps does not depend on where they are cut."""
SHORT = {"mid_fight": 0.9, "boss_hp_share": (0.05, 0.15), "player_hp_share": (0.1, 0.3)}
"""Starts with little health on both sides, so that fights end soon, in one way or the other."""
EVENTS = ("damage_dealt", "damage_taken", "hit_by", "landed", "dodged")


def reset(batch, seed):
    """Begin all fights of a seed, with starts and files of that seed too."""
    fights, starts = np.random.SeedSequence(seed).spawn(2)
    if batch.population is not None:
        batch.population.reset(seed, partial(batch.engine.replace, all_begin=True))
    seeds = fights.generate_state(batch.number, np.uint64).astype(np.uint64)
    batch.begin(seeds=seeds, generator=np.random.default_rng(starts))


# ---------------------------------------------------------------- an engine that plays a script


class ScriptedEngine:
    """Each step sets the fields that the script names; a fight begins with nothing happened and all actions open."""

    def __init__(self, n, script):
        self.fights = np.zeros(n, FIGHT)
        self.script = iter(script)
        self.skips, self.pressed, self.seeds = [], [], None

    def reset(self, mask, starts, seeds):
        if seeds is not None:
            self.seeds = seeds.copy()
        self.fights[mask] = np.zeros(1, FIGHT)[0]
        self.fights["action_mask"][mask] = 1
        for key, value in (("player_max_hp", 100), ("boss_max_hp", 1000), ("boss_hp", 777.0)):
            self.fights[key][mask] = value

    def step(self, controls, *, skip=False):
        self.skips.append(skip)
        self.pressed.append(controls.copy())
        for key, values in next(self.script).items():
            self.fights[key] = values

    def snapshot(self):
        return Snapshot("script", self.fights.copy(), np.zeros(len(self.fights), np.uint8))


class LastAction:
    """Shows the step of a fight and the last action in it."""

    size, names = 2, ("step", "action")

    def begin(self, fights, mask): ...

    def encode(self, fights, actions, mask, out):
        out[mask, 0], out[mask, 1] = fights["step"][mask], actions[mask]

    def state(self):
        return {}


class Heard:
    """Standard starts for all but the last fight, which remember what they were told."""

    def __init__(self, n):
        self.inner, self.reports = make_starts("standard", n, load_fight("iudex")), []
        self.is_standard = np.arange(n) < n - 1

    def draw(self, mask, generator):
        return self.inner.draw(mask, generator)

    def report(self, ended, won):
        self.reports.append((ended.tolist(), won[ended].tolist()))


def scripted(spec, *script, step_limit=50, no_hit=False, actions=("walk F", "roll B", "nothing"), decisions=True):
    n = len(next(iter(script[0].values())))
    parts = FightParts(
        encoder=LastAction(),
        reward=make_reward("duel", n, spec, weights=LINEAR),
        actions=make_actions(names=actions),
        ending=make_ending(step_limit, no_hit=no_hit),
        starts=Heard(n),
    )
    world = FightBatch(ScriptedEngine(n, script), parts, decisions=decisions)
    reset(world, 0)
    return world


def chosen(*actions):
    return np.array(actions, np.int64)


def test_a_step_shows_what_passed_and_what_was_done(spec):
    world = scripted(spec, {"step": [3, 1], "damage_dealt": [100.0, 0.0]})
    assert world.observations.tolist() == [[0, -1], [0, -1]]
    step = world.step(chosen(1, 2))
    assert world.engine.pressed[0].tolist() == [(4, 1), (-1, 0)]
    assert world.engine.skips == [True]
    assert step.steps.tolist() == [3, 1]
    assert world.observations.tolist() == [[3, 12], [1, NOTHING]]
    # 6 for each share of the boss's health, 0.01 less for each step.
    assert step.rewards == pytest.approx([0.6 - 0.03, -0.01])
    assert dict(zip(world.term_names, step.terms[0], strict=True)) == pytest.approx(
        {"dealt": 0.6, "taken": 0.0, "win": 0.0, "step": -0.03}
    )
    assert not step.ended.any()


def test_without_decisions_every_step_is_played_alone(spec):
    world = scripted(spec, {"step": [1, 1]}, decisions=False)
    world.step(chosen(0, 0))
    assert world.engine.skips == [False]


def test_how_fights_end_and_begin_anew(spec):
    won, died, running = Outcome.WON, Outcome.DIED, Outcome.RUNNING
    world = scripted(
        spec,
        {"step": [49, 49, 49, 40]},
        {"step": [50, 51, 50, 41], "outcome": [won, running, died, running], "boss_hp": [[0.0], [5.0], [9.0], [8.0]]},
    )
    world.step(chosen(0, 0, 0, 0))
    step = world.step(chosen(0, 1, 2, 1))
    # A fight that is over at the step limit is over, not cut off.
    assert step.terminated.tolist() == [True, False, True, False]
    assert step.truncated.tolist() == [False, True, False, False]
    assert step.ended.tolist() == [True, True, True, False]
    assert step.won.tolist() == [True, False, False, False]
    assert step.standard.tolist() == [True, True, True, False]
    assert step.steps.tolist() == [1, 2, 1, 1]
    assert step.final_observations[:3].tolist() == [[50, 0], [51, 12], [50, NOTHING]]
    assert step.endings["boss_hp"][:3, 0].tolist() == [0.0, 5.0, 9.0]
    assert world.observations.tolist() == [[0, -1], [0, -1], [0, -1], [41, 12]]
    assert world.engine.fights["boss_hp"][:, 0].tolist() == [777.0, 777.0, 777.0, 8.0]
    assert world.parts.starts.reports == [([True, True, True, False], [True, False, False])]


def test_masks_before_and_after_the_new_beginning(spec):
    closed = np.zeros((2, 20), np.int8)
    closed[:, NOTHING] = 1
    closed[1, 12] = 1
    world = scripted(spec, {"step": [1, 1], "outcome": [Outcome.DIED, Outcome.RUNNING], "action_mask": closed})
    assert world.masks.all()
    step = world.step(chosen(0, 0))
    assert step.final_masks[0].tolist() == [False, False, True]
    assert world.masks.tolist() == [[True, True, True], [False, True, True]]


def test_where_nothing_of_the_set_is_open_all_is(spec):
    closed = np.zeros((1, 20), np.int8)
    closed[:, NOTHING] = 1
    world = scripted(spec, {"step": [1], "action_mask": closed}, actions=("walk F", "roll B"))
    world.step(chosen(0))
    assert world.masks.tolist() == [[True, True]]


@pytest.mark.parametrize(("no_hit", "won"), [(False, True), (True, False)])
def test_a_hit_taken_with_the_winning_blow_loses_a_no_hit_fight(spec, no_hit, won):
    world = scripted(spec, {"step": [1], "outcome": [Outcome.WON], "taken_total": [1.0]}, no_hit=no_hit)
    step = world.step(chosen(0))
    assert step.terminated.tolist() == [True]
    assert step.won.tolist() == [won]
    assert world.parts.starts.reports == [([True], [won])]


def test_the_first_hit_ends_a_no_hit_fight(spec):
    world = scripted(spec, {"step": [1, 1], "taken_total": [0.0, 3.0]}, no_hit=True)
    step = world.step(chosen(0, 0))
    assert step.terminated.tolist() == [False, True]
    assert not step.won[1]


# ---------------------------------------------------------------- on the simulator


def simulated(
    specs,
    n,
    *,
    decisions=True,
    encoder="player",
    history=1,
    weights=LINEAR,
    starts=SHORT,
    population=None,
    **settings,
):
    spec = specs[0] if isinstance(specs, tuple) else specs
    parts = FightParts(
        encoder=make_encoder(encoder, n, spec, history=history),
        reward=make_reward("duel", n, spec, weights=weights),
        actions=make_actions(),
        ending=make_ending(settings.pop("step_limit", 3000), no_hit=settings.pop("no_hit", False)),
        starts=make_starts(starts, n, spec),
    )
    engine = SimEngine(specs, n, changes=True, **settings)
    return FightBatch(engine, parts, decisions=decisions, population=population)


def open_actions(world, generator):
    """Any of the open actions, for every fight."""
    numbers = generator.random(world.masks.shape)
    return np.where(world.masks, numbers, -1.0).argmax(axis=1)


def played(world, decisions, generator):
    """Everything a learner gets to see of so many decisions, as bytes."""
    seen = []
    for _ in range(decisions):
        step = world.step(open_actions(world, generator))
        seen += [world.observations.tobytes(), world.masks.tobytes(), step.rewards.tobytes(), step.terms.tobytes()]
        seen += [step.steps.tobytes(), step.terminated.tobytes(), step.truncated.tobytes()]
        ended = step.ended
        seen += [step.final_observations[ended].tobytes(), step.won[ended].tobytes(), step.standard[ended].tobytes()]
        seen += [step.endings["time_s"][ended].tobytes(), step.final_masks[ended].tobytes()]
    return seen


@pytest.mark.parametrize("randomize", [0.0, 1.0])
def test_merged_steps_are_the_same_fights_stepped_one_by_one(spec, randomize):
    quick = simulated(spec, 1, randomize=randomize)
    slow = simulated(spec, 1, randomize=randomize, decisions=False)
    generator = np.random.default_rng(5)
    merged = ends = 0
    reset(quick, 3), reset(slow, 3)
    for _ in range(400):
        action = open_actions(quick, generator)
        whole = quick.step(action)
        sums = np.zeros(1 + len(quick.term_names))
        for index in range(int(whole.steps[0])):
            if index:
                assert not slow.masks[0, :NOTHING].any()
            one = slow.step(action if index == 0 else chosen(NOTHING))
            assert one.steps.tolist() == [1]
            sums += [one.rewards[0], *one.terms[0]]
            assert one.ended[0] == (whole.ended[0] and index == whole.steps[0] - 1)
        assert [whole.rewards[0], *whole.terms[0]] == pytest.approx(sums.tolist(), abs=1e-6)
        assert (whole.terminated[0], whole.truncated[0]) == (one.terminated[0], one.truncated[0])
        for name in set(FIGHT.names) - set(EVENTS):
            assert np.array_equal(quick.engine.fights[name], slow.engine.fights[name]), name
            if whole.ended[0]:
                assert np.array_equal(whole.endings[name], one.endings[name]), name
        assert np.array_equal(quick.masks, slow.masks)
        merged += int(whole.steps[0] > 1)
        ends += int(whole.ended[0])
    assert merged > 100
    assert ends > 10


def test_final_observation_is_the_one_before_the_new_beginning(spec):
    """Of a fight alone, whose records are encoded beside it."""
    world = simulated(spec, 1, encoder="soulsai74")
    beside = make_encoder("soulsai74", 1, spec)
    everyone, seen = np.ones(1, np.bool_), np.zeros((1, beside.size), np.float32)
    generator, ends = np.random.default_rng(1), 0
    reset(world, 1)
    beside.begin(world.engine.fights, everyone)
    beside.encode(world.engine.fights, chosen(-1), everyone, seen)
    for _ in range(150):
        assert np.array_equal(world.observations, seen)
        actions = open_actions(world, generator)
        step = world.step(actions)
        records = step.endings if step.ended[0] else world.engine.fights
        beside.encode(records, actions, everyone, seen)
        if step.ended[0]:
            ends += 1
            assert np.array_equal(step.final_observations, seen)
            assert not np.array_equal(step.final_observations, world.observations)
            beside.begin(world.engine.fights, everyone)
            beside.encode(world.engine.fights, chosen(-1), everyone, seen)
    assert ends > 3


def test_a_fight_that_takes_too_long_is_cut_off(spec):
    world = simulated(spec, 4, starts={}, step_limit=20)
    reset(world, 0)
    generator = np.random.default_rng(0)
    cut = False
    while not cut:
        step = world.step(open_actions(world, generator))
        cut = bool(step.truncated.any())
        assert (step.truncated <= (step.endings["step"] >= 20)).all()
    assert not (step.truncated & step.terminated).any()
    assert (world.engine.fights["step"][step.truncated] == 0).all()


FULL = {"randomize": 0.5, "history": 2, "weights": {"combo": 0.1}, "starts": SHORT | {"curriculum": 0.5}}


def test_a_restored_world_goes_on_to_the_last_bit(spec):
    world, generator = simulated(spec, 6, **FULL), np.random.default_rng(2)
    reset(world, 4)
    played(world, 60, generator)
    state = world.state()
    before = {name: array.copy() for name, array in state.items()}
    numbers = generator.bit_generator.state
    expected = played(world, 120, generator)
    assert all(np.array_equal(before[name], array) for name, array in state.items())

    other = simulated(spec, 6, **FULL)
    other.restore(state)
    generator.bit_generator.state = numbers
    assert played(other, 120, generator) == expected
    ends = other.state()
    assert {name: array.tobytes() for name, array in world.state().items()} == {
        name: array.tobytes() for name, array in ends.items()
    }


def test_a_state_without_the_generator_of_starts_would_differ(spec):
    """The test above is only worth something if the starts drawn later matter."""
    world = simulated(spec, 6, **FULL)
    reset(world, 4)
    state = world.state()
    expected = played(world, 120, np.random.default_rng(2))
    world.restore(state | {"generator": simulated(spec, 6).state()["generator"]})
    assert played(world, 120, np.random.default_rng(2)) != expected


def test_state_of_another_number_is_refused(spec):
    world = simulated(spec, 2)
    reset(world, 0)
    with pytest.raises(MisuseError, match="the saved fights are not 3 of this simulator"):
        simulated(spec, 3).restore(world.state())


def test_the_seed_decides_the_fights(spec):
    def fights(seed):
        world = simulated(spec, 3, randomize=0.5)
        reset(world, seed)
        return [world.observations.tobytes(), *played(world, 60, np.random.default_rng(0))]

    assert fights(1) == fights(1)
    assert fights(1) != fights(2)


def test_fights_side_by_side_differ_from_each_other(spec):
    world = simulated(spec, 4, starts={})
    reset(world, 0)
    for _ in range(60):
        world.step(np.full(4, NOTHING))
    assert len(np.unique(world.observations, axis=0)) == 4


# ---------------------------------------------------------------- a population of files


MIXED = ("standard", "hard", "drawn:3")


def populated(n=12, variants=MIXED, renew_after=2.0, **settings):
    population = Population("iudex", variants, n, renew_after=renew_after)
    return simulated(population.specs, n, counts=population.counts, population=population, **settings)


def test_two_variants_in_one_engine_are_the_two_alone(spec):
    hard = load_fight("iudex", "hard")
    both = populated(5, ("standard", "hard"), starts={})
    reset(both, 9)
    alone = [simulated(spec, 5, starts={}), simulated(hard, 5, starts={})]
    for world in alone:
        reset(world, 9)
    generator, ends = np.random.default_rng(0), 0
    for _ in range(100):
        actions = open_actions(both, generator)
        whole = both.step(actions)
        for world, part in zip(alone, (slice(0, 3), slice(3, 5)), strict=True):
            own = world.step(np.where(np.isin(np.arange(5), np.arange(5)[part]), actions, NOTHING))
            assert np.array_equal(both.observations[part], world.observations[part])
            for name in ("rewards", "terms", "steps", "terminated", "truncated", "ended"):
                assert np.array_equal(getattr(whole, name)[part], getattr(own, name)[part]), name
        ends += int(whole.ended.sum())
    assert ends > 5


def test_a_restored_population_goes_on_to_the_last_bit():
    """Stopped while a fight still plays a file that was replaced; more are replaced afterwards."""
    world, generator = populated(**FULL), np.random.default_rng(2)
    reset(world, 4)
    played(world, 500, generator)
    hidden, extra = world.engine.hidden, 0
    while (hidden["table"] == hidden["next_table"]).all() and extra < 500:
        played(world, 1, generator)
        extra += 1
    assert extra < 500
    state, numbers, draws = world.state(), generator.bit_generator.state, world.population.draws
    assert draws > 6
    expected = played(world, 500, generator)
    assert world.population.draws > draws + 3

    other = populated(**FULL)
    other.restore(state)
    generator.bit_generator.state = numbers
    assert played(other, 500, generator) == expected
    assert {name: array.tobytes() for name, array in other.state().items()} == {
        name: array.tobytes() for name, array in world.state().items()
    }


def test_a_state_with_another_file_would_differ():
    """The test above is only worth something if the drawn files matter."""
    world = populated()
    reset(world, 4)
    played(world, 100, np.random.default_rng(2))
    state = world.state()
    expected = played(world, 100, np.random.default_rng(3))
    world.restore(state | {"population.seeds": state["population.seeds"] + np.uint64(1)})
    assert played(world, 100, np.random.default_rng(3)) != expected


def test_a_reset_draws_the_files_of_its_seed():
    """Whatever was played before, and in the middle of fights."""
    fresh, used = populated(), populated()
    reset(used, 1)
    played(used, 200, np.random.default_rng(0))
    others = used.population.seeds.tolist()
    reset(fresh, 2)
    reset(used, 2)
    assert used.population.seeds.tolist() == fresh.population.seeds.tolist() != others
    assert played(used, 100, np.random.default_rng(1)) == played(fresh, 100, np.random.default_rng(1))


def test_a_state_of_other_variants_is_refused():
    world = populated()
    reset(world, 0)
    for variants in (("standard", "hard"), ("drawn:12",)):
        with pytest.raises(MisuseError, match="the saved fights are of other variants"):
            populated(variants=variants).restore(world.state())


def test_a_population_of_other_fights_is_refused(spec):
    population = Population("iudex", MIXED, 8)
    for engine in (SimEngine(spec, 8), ScriptedEngine(8, [])):
        with pytest.raises(MisuseError, match="the population is not of these fights"):
            FightBatch(engine, simulated(spec, 8).parts, population=population)
