"""Small problems whose answers are known."""

import numpy as np
import pytest
import torch

from soulsgym.batch import Step


class Bandit:
    """One decision an episode; the third of four arms pays, the last would pay more but is closed."""

    number, observation_size, num_actions, term_names = 32, 1, 4, ("reward",)
    pays = np.array([0.0, 0.2, 1.0, 5.0], np.float32)

    def __init__(self):
        self.observations = np.ones((self.number, 1), np.float32)
        self.masks = np.tile([True, True, True, False], (self.number, 1))
        self._step = Step.of_size(self.number, 1, 4, 1)
        self._step.steps[:], self._step.terminated[:], self._step.ended[:] = 1, True, True

    def step(self, actions):
        self._step.rewards[:] = self.pays[actions]
        return self._step


@pytest.fixture
def bandit():
    return Bandit()


@pytest.fixture
def chain_batch():
    """Two places. In the first, 0 ends with 1 and 1 goes on to the second, where 0 ends with 2 and 1 with nothing."""

    def chain(next_masks=None, copies=4, gamma=0.9):
        places = torch.eye(2)
        rows = {
            "observations": places[[0, 0, 1, 1]],
            "actions": torch.tensor([0, 1, 0, 1]),
            "rewards": torch.tensor([1.0, 0.0, 2.0, 0.0]),
            "discounts": torch.tensor([0.0, gamma, 0.0, 0.0]),
            "next_observations": places[[1, 1, 1, 1]],
            "next_masks": torch.ones(4, 2, dtype=torch.bool) if next_masks is None else next_masks,
            "weights": torch.ones(4),
        }
        return {name: values.repeat(copies, *[1] * (values.dim() - 1)) for name, values in rows.items()}

    return chain
