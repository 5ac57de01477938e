"""A world that plays a script, for the tests of acting."""

from __future__ import annotations

import numpy as np
import pytest

from soulsgym.batch import Step

FINAL = 1000.0


class ScriptedWorld:
    """`n` episodes whose script has one entry per step: rewards, steps and how they end.

    An observation is (number of the step, number of the episode); final ones have 1000 added to the first.
    """

    term_names = ("reward",)
    observation_size = 2

    def __init__(self, n, num_actions, script):
        self.number, self.num_actions = n, num_actions
        self.observations = np.zeros((n, 2), np.float32)
        self.observations[:, 1] = np.arange(n)
        self.masks = np.ones((n, num_actions), np.bool_)
        self.actions = []
        self._script, self._step, self._now = iter(script), Step.of_size(n, 2, num_actions, 1), 0

    def step(self, actions):
        script, step = next(self._script), self._step
        self.actions.append(actions.copy())
        self._now += 1
        step.rewards[:] = script.get("rewards", 0.0)
        step.terms[:, 0] = step.rewards
        step.steps[:] = script.get("steps", 1)
        step.terminated[:], step.truncated[:] = script.get("terminated", False), script.get("truncated", False)
        np.logical_or(step.terminated, step.truncated, out=step.ended)
        step.final_observations[:] = -7.0  # not to be looked at where nothing ended
        step.final_masks[:] = False
        self.observations[:, 0] = self._now
        step.final_observations[step.ended] = self.observations[step.ended] + np.array([FINAL, 0.0], np.float32)
        step.final_masks[step.ended] = script.get("final_masks", True)
        self.masks[:] = script.get("masks", True)
        return step


@pytest.fixture
def scripted_world():
    """Makes one: `scripted_world(n, num_actions, script)`."""
    return ScriptedWorld
