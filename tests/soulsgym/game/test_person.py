"""Recording a person who plays: what is pressed is told by what is seen, and nothing but memory is read."""

import math

import pytest
from fake_game import fake_game

from soulsgym.actions import NOTHING
from soulsgym.errors import GameNotFound
from soulsgym.recordings import person
from soulsgym.recordings.person import direction_of, record_person
from soulsgym.spec import load_fight
from soulsgym.state import Outcome

LIGHT, ROLLS = 16, range(8, 16)


@pytest.mark.parametrize("turn", range(8))
@pytest.mark.parametrize("view", [0.0, 1.0, -2.5])
def test_a_way_is_the_key_that_leads_there(turn, view):
    angle = view + turn * math.pi / 4
    camera = (0.0, 0.0, 0.0, math.sin(view), math.cos(view), 0.0)
    assert direction_of((math.sin(angle), math.cos(angle)), camera) == turn


class Typist:
    """Presses keys of a game by the tick, whenever somebody asks whether to stop."""

    def __init__(self, world, script, end):
        self.world, self.script, self.end = world, script, end

    def __call__(self):
        held = {key for low, high, key in self.script if low <= self.world.ticks < high}
        self.world.keys.down = {self.world.bindings[action] for action in held}
        return self.world.ticks > self.end


def watched(world, game, script, end=600):
    plan = load_fight("iudex", moves=False).game
    world.permissions["allow_hits"] = False
    return person._watch_fight(game.title, plan, Typist(world, script, end), game.source)


def test_presses_of_a_person_are_told_by_what_is_seen():
    game = fake_game(screen="arena")
    world = game.world
    world.boss_pose[:2] = [world.pose[0] + 2.0, world.pose[1]]
    script = [(300, 304, "lightattack"), (400, 404, "roll"), (480, 540, "forward")]
    seen = watched(world, game, script)
    assert len(seen.records) > 60
    assert seen.samples > 300
    assert seen.actions.count(LIGHT) == 1 == world.lights
    assert sum(action in ROLLS for action in seen.actions) == 1
    assert 7 <= seen.actions.count(0) <= 12
    assert seen.records[-1]["outcome"] == Outcome.BROKEN  # it was stopped
    assert [int(record["step"]) for record in seen.records] == list(range(len(seen.records)))


def test_a_fight_ends_with_a_death():
    game = fake_game(screen="arena")
    game.world.boss_pose[:2] = [game.world.pose[0] + 2.0, game.world.pose[1]]
    plan = load_fight("iudex", moves=False).game
    stop = Typist(game.world, [], 6000)
    seen = person._watch_fight(game.title, plan, stop, game.source)
    assert seen.records[-1]["outcome"] == Outcome.DIED
    assert set(seen.actions) == {NOTHING}


def test_nobody_plays():
    with pytest.raises(GameNotFound):
        record_person(load_fight("iudex", moves=False).game, 1, pid=1)
