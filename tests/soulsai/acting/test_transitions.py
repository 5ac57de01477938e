"""Transitions over ends, merged steps and masks."""

from itertools import repeat

import numpy as np

from soulsai.acting.transitions import TransitionActor
from soulsai.acting.world import sizes_of
from soulsai.experience import Schema
from soulsai.replay.n_step import TRANSITION


class FightFile:
    """Chooses what it is told, and remembers what it saw."""

    def __init__(self):
        self.actions, self.masks = [], []

    def __call__(self, observations, masks, generator):
        self.masks.append(masks.copy())
        return np.array(self.actions.pop(0))


def make_actor(world, *, n_step=1, gamma=0.5, masks=True):
    schema = Schema.of(TRANSITION, sizes_of(world))
    actor = TransitionActor(world, schema, FightFile(), n_step=n_step, gamma=gamma, masks=masks, seed=[0])
    actor.told = actor.choose
    return actor


def rows_of(actor, actions):
    """Each row as (seen, action, reward, discount, what came after, open actions then), and the steps."""
    actor.told.actions.append(actions)
    chunk = actor.play()
    rows = chunk.columns
    listed = zip(
        rows["observations"][:, 0].tolist(), rows["actions"].tolist(), rows["rewards"].tolist(),
        rows["discounts"].tolist(), rows["next_observations"][:, 0].tolist(), rows["next_masks"].astype(int).tolist(),
        strict=True,
    )  # fmt: skip
    return list(listed), chunk.steps


A, B, FINAL = [1, 1, 0], [1, 0, 0], [0, 0, 1]


def test_single_decisions(scripted_world):
    script = [
        {"rewards": [1.0, 2.0], "steps": [1, 3], "masks": np.array([A, B], bool)},
        {"terminated": [True, False], "truncated": [False, True], "final_masks": np.array(FINAL, bool)},
    ]
    actor = make_actor(scripted_world(2, 3, script))
    assert rows_of(actor, [0, 2]) == ([(0, 0, 1.0, 0.5, 1, A), (0, 2, 2.0, 0.125, 1, B)], 4)
    # Over: no bootstrap. Cut off: from the final observation, with the actions open then.
    assert rows_of(actor, [1, 1]) == ([(1, 1, 0.0, 0.0, 1002, FINAL), (1, 1, 0.0, 0.5, 1002, FINAL)], 2)


def test_two_decisions_and_the_short_row_of_an_end(scripted_world):
    script = [{"rewards": 1.0}, {"rewards": 4.0, "steps": 2}, {"rewards": 8.0, "truncated": True}, {"rewards": 16.0},
              {"rewards": 32.0, "terminated": True}]  # fmt: skip
    actor = make_actor(scripted_world(1, 3, script), n_step=2)
    free = [1, 1, 1]
    assert rows_of(actor, [0]) == ([], 1)
    assert rows_of(actor, [1]) == ([(0, 0, 1 + 4 / 2, 1 / 8, 2, free)], 2)
    assert rows_of(actor, [2]) == (
        [(1, 1, 4 + 8 / 4, 1 / 8, 1003, free), (2, 2, 8.0, 1 / 2, 1003, free)],
        1,
    )
    assert rows_of(actor, [0]) == ([], 1)
    assert rows_of(actor, [1]) == ([(3, 0, 16 + 32 / 2, 0.0, 1005, free), (4, 1, 32.0, 0.0, 1005, free)], 1)


def test_episodes_that_ended_come_with_the_decision_that_ended_them(scripted_world):
    script = [{"rewards": [1.0, 2.0], "steps": [1, 3]}, {"rewards": [3.0, 4.0], "terminated": [False, True]}, {}]
    actor = make_actor(scripted_world(2, 3, script))
    actor.told.actions += [[0, 0]] * 3
    ended = [actor.play().ended for _ in range(3)]
    assert [done.lengths.tolist() for done in ended] == [[], [4], []]
    assert ended[1].terms.tolist() == [[6.0]]


def test_only_open_actions_are_offered(scripted_world):
    mask = np.array([True, False, True])
    for masks, offered in ((True, [mask.tolist()]), (False, [[True] * 3])):
        world = scripted_world(1, 3, [{}])
        world.masks[:] = mask
        actor = make_actor(world, masks=masks)
        rows_of(actor, [0])
        assert actor.told.masks[0].tolist() == offered


def test_without_masks_all_next_actions_are_open(scripted_world):
    actor = make_actor(scripted_world(1, 3, repeat({"masks": np.array(B, bool), "truncated": [True]})), masks=False)
    assert rows_of(actor, [2])[0][0][5] == [1, 1, 1]


def test_a_restored_actor_goes_on_with_what_waits_unless_new_episodes_began(scripted_world):
    script = [{"rewards": 1.0}, {"rewards": 2.0}, {"rewards": 4.0}]
    actor = make_actor(scripted_world(1, 3, script), n_step=2)
    rows_of(actor, [0])
    state = actor.own_state()
    for same, rows in ((True, [(0, 0, 2.0, 0.25, 1, [1, 1, 1])]), (False, [])):
        other = make_actor(scripted_world(1, 3, script[1:]), n_step=2)
        other.restore_own(state, same_episodes=same)
        assert rows_of(other, [1])[0] == rows
