"""A recording of the simulator, repeated from its seeds: not one bit may differ."""

import dataclasses

import numpy as np
import pytest

from soulsgym.actions import NOTHING
from soulsgym.envs.simulated import FightSettings, simulated_batch
from soulsgym.errors import RecordingError
from soulsgym.recordings import Recording, read_recording, write_recording
from soulsgym.recordings.departure import Departure
from soulsgym.recordings.exact import data_digest, exact_departures, other_data, recorded_spec, simulation_of
from soulsgym.recordings.fidelity import measure_fidelity

STEPS = 150


def recorded(settings, seeds, steps=STEPS):
    """Fights of the simulator with random actions, of which one in five is nothing."""
    batch, rng = simulated_batch(settings), np.random.default_rng(seeds[0])
    records, actions, episodes = [], [], []
    for number, seed in enumerate(seeds):
        batch.begin(np.ones(1, np.bool_), seeds=np.array([seed], np.uint64))
        records.append(batch.record())
        actions.append(NOTHING)
        episodes.append(number)
        for action in rng.integers(0, 25, steps).clip(0, NOTHING).tolist():
            batch.step(np.array([action]))
            records.append(batch.record())
            actions.append(action)
            episodes.append(number)
            if records[-1]["outcome"][0]:
                break
    return Recording(
        np.concatenate(records), np.array(actions), np.array(episodes), simulation=simulation_of(settings, seeds)
    )


@pytest.fixture(scope="module")
def own():
    return recorded(FightSettings("iudex", changes=True), [7, 8])


@pytest.mark.parametrize(
    ("settings", "seeds"),
    [
        (FightSettings("iudex"), [0]),
        (FightSettings("iudex", changes=True, randomize=1.0), [1, 2**63 + 5, 3]),
        (FightSettings("iudex", phase=2, random_player_pose=True), [4, 5]),
        (FightSettings("iudex", variant="hard", randomize=0.3, random_player_pose=True), [6]),
        (FightSettings("iudex", changes=True, skip_steps=True, randomize=0.5), [9, 10]),
    ],
)
def test_the_simulator_repeats_itself_to_the_last_bit(tmp_path, settings, seeds):
    write_recording(tmp_path / "own.npz", recorded(settings, seeds))
    read = read_recording(tmp_path / "own.npz")
    departures = exact_departures(read)
    assert [each.fight for each in departures] == list(range(1, len(seeds) + 1))
    assert [(each.step, each.reason) for each in departures] == [(None, "")] * len(seeds)
    assert sum(each.steps + 1 for each in departures) == len(read)


def test_skipped_steps_leave_nothing_to_restart_from(spec):
    recording = recorded(FightSettings("iudex", skip_steps=True), [3])
    assert np.diff(recording.fights["step"]).max() > 1
    measured = measure_fidelity(recording, spec)
    assert measured.metrics == ()
    assert [each.step for each in measured.departures] == [None]
    with pytest.raises(RecordingError, match=r"no fight has two records in a row; record without skipping steps"):
        measure_fidelity(dataclasses.replace(recording, simulation=None), spec)


def test_a_changed_action_shows_in_its_step(own):
    step = 20 + int(np.flatnonzero(own.fights["action_mask"][20:-1, 8] & (own.actions[21:] == NOTHING))[0]) + 1
    actions = own.actions.copy()
    actions[step] = 8
    first, second = exact_departures(dataclasses.replace(own, actions=actions))
    assert first.step == step
    assert first.reason.startswith("player_sp ")
    assert second.step is None


@pytest.mark.parametrize(
    ("name", "step", "value", "reason"),
    [
        ("boss_hp", 0, 1038.0, "boss_hp 1037.0 instead of 1038.0"),
        ("killed_by", 9, 3, "killed_by -1 instead of 3"),
        ("damage_dealt", 5, -0.0, "damage_dealt 0.0 instead of -0.0"),
    ],
)
def test_an_edited_record_is_named_with_its_step(own, name, step, value, reason):
    low, high = own.bounds()[1]
    fights = own.fights.copy()
    assert fights[name][low + step] != value or value == 0.0
    fights[name][low + step] = value
    departures = exact_departures(dataclasses.replace(own, fights=fights))
    assert departures[1] == Departure(2, high - low - 1, step, reason)
    assert departures[0].step is None


def test_another_seed_is_another_fight(own):
    seeds = (own.simulation.seeds[0], 1000)
    other = dataclasses.replace(own, simulation=dataclasses.replace(own.simulation, seeds=seeds))
    first, second = exact_departures(other)
    assert first.step is None
    assert second.step is not None


def changed(own, **settings):
    simulation = own.simulation
    return dataclasses.replace(
        own, simulation=dataclasses.replace(simulation, settings=dataclasses.replace(simulation.settings, **settings))
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"boss": "iudix"}, r"memory: cannot be repeated: boss 'iudix' is not known, did you mean 'iudex'"),
        ({"variant": "harder"}, r"memory: cannot be repeated: variant 'harder' of iudex is not known"),
        ({"phase": 9}, r"memory: cannot be repeated: phase 9 is not there"),
        ({"randomize": 2.0}, r"memory: cannot be repeated: randomize 2.0 is out of range"),
    ],
)
def test_a_fight_that_is_not_here_is_named(own, settings, message):
    with pytest.raises(RecordingError, match=message):
        exact_departures(changed(own, **settings))


@pytest.mark.slow
def test_other_data_is_said_and_not_measured_as_drift(own, spec):
    old = dataclasses.replace(own, simulation=dataclasses.replace(own.simulation, data="0123456789abcdef"))
    measured = measure_fidelity(old, spec)
    assert measured.departures == ()
    assert measured.note == (
        f"Recorded with other data of iudex (digest 0123456789abcdef, now {data_digest(spec)}), "
        "so it cannot be repeated exactly; record it again."
    )
    assert measured["M2"].n > 0
    assert other_data(own) == ""


def test_the_digest_is_of_every_number(spec):
    player = dataclasses.replace(spec.player, hp=spec.player.hp + 1)
    boss = dataclasses.replace(spec.boss, hp=spec.boss.hp + 1)
    arena = dataclasses.replace(spec.arena, boss_start=(1.0, 2.0, 3.0))
    others = [dataclasses.replace(spec, **part) for part in ({"player": player}, {"boss": boss}, {"arena": arena})]
    assert len({data_digest(each) for each in (spec, *others)}) == 4
    assert data_digest(dataclasses.replace(spec)) == data_digest(spec)


def test_a_recording_of_the_game_has_nothing_to_repeat(own):
    game = dataclasses.replace(own, simulation=None)
    assert recorded_spec(game) is None
    assert other_data(game) == ""
    with pytest.raises(RecordingError, match="has no seeds; give a recording of the simulator"):
        exact_departures(game)
