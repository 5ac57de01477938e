"""Transitions over ends, merged steps and masks."""

from itertools import repeat

import numpy as np
import torch

from soulsai.acting.episodes import Episodes
from soulsai.acting.transitions import TransitionActor
from soulsai.replay import NStepAccumulator


def make_actor(world, *, n_step=1, gamma=0.5, masks=True, values=(0.0, 1.0, 2.0)):
    return TransitionActor(
        world,
        lambda observations: torch.tensor([values] * len(observations)),
        NStepAccumulator(world.number, n_step, gamma, world.observation_size, world.num_actions),
        masks=masks,
        generator=np.random.default_rng(0),
        episodes=Episodes(world.number, world.term_names, fights=False),
        device=torch.device("cpu"),
    )


def rows_of(actor, actions):
    """Each row as (seen, action, reward, discount, what came after, open actions then), and the steps."""
    rows, steps = actor.play(np.array(actions))
    listed = zip(
        rows.observations[:, 0].tolist(), rows.actions.tolist(), rows.rewards.tolist(), rows.discounts.tolist(),
        rows.next_observations[:, 0].tolist(), rows.next_masks.astype(int).tolist(), strict=True,
    )  # fmt: skip
    return list(listed), steps


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


def test_greedy_among_open_actions(scripted_world):
    world = scripted_world(2, 3, [])
    world.masks[:] = [[True, True, False], [True, False, True]]
    assert make_actor(world).choose(np.zeros(2)).tolist() == [1, 2]
    assert make_actor(world, masks=False).choose(np.zeros(2)).tolist() == [2, 2]
    assert make_actor(world, values=(-3.0, -4.0, -1.0)).choose(np.zeros(2)).tolist() == [0, 2]


def test_without_masks_all_next_actions_are_open(scripted_world):
    actor = make_actor(scripted_world(1, 3, repeat({"masks": np.array(B, bool), "truncated": [True]})), masks=False)
    assert rows_of(actor, [2])[0][0][5] == [1, 1, 1]
