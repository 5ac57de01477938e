"""Gradient steps on another device than the processor mix no tensors of two (on `meta`, which computes nothing)."""

import numpy as np
import pytest
import torch

from soulsai.algorithms.algorithm import algorithm_of, tensors_of
from soulsai.config import load_preset, with_settings
from soulsai.experience import Chunk, Ended, Sizes

META = torch.device("meta")
SIZES = Sizes(observation_size=6, num_actions=4, terms=1, number=8)
Q = {
    "plain": [],
    "double": ["q.double=true"],
    "twin": ["q.twin=true"],
    "clipped": ["q.clipped=true"],
    "noisy": ["q.noisy=true", "q.dueling=true"],
    "c51": ["q.distribution='c51'", "q.double=true"],
    "quantile": ["q.distribution='quantile'", "q.clipped=true"],
    "hard": ["q.target='hard'", "q.optimizer='adamw'", "q.final_learning_rate=0.5"],
}


def made(preset, *settings):
    config = with_settings(load_preset(preset), ["network.hidden=[8]", "network.normalize=true", *settings])
    return algorithm_of(config).learner(config, SIZES, META)


def on_meta(columns):
    return {name: torch.from_numpy(column).to(META) for name, column in columns.items()}


def check(learner, metrics):
    assert {value.device.type for value in metrics.values() if isinstance(value, torch.Tensor)} == {"meta"}
    assert {flat.data.device.type for flat in learner.flats.values()} == {"meta"}


@pytest.mark.parametrize(
    ("preset", "settings"), [*(("dqn", settings) for settings in Q.values()), ("sac", [])], ids=[*Q, "sac"]
)
def test_a_gradient_step_from_a_replay(preset, settings):
    learner = made(preset, *settings)
    batch = on_meta(learner.schema.empty(16) | {"weights": np.ones(16, np.float32)})
    learner.normalize_with(batch["observations"])
    for _ in range(2):
        wrong, metrics = learner.learn(batch)
        assert wrong.device.type == "meta"
        check(learner, metrics)


@pytest.mark.parametrize("preset", ["iudex", "impala"])
def test_a_gradient_step_from_rollouts(preset):
    learner = made(preset)
    rows = learner.schema.length * SIZES.number
    learner.take(Chunk(learner.schema.empty(rows), Ended.join([], 1), rows))
    rollout = tensors_of(learner.take_all())
    if preset == "impala":
        check(learner, learner._step({name: values.to(META) for name, values in rollout.items()}, 0.01))
    else:
        data = learner._prepare(rollout)
        check(learner, learner._step(data, learner._minibatches(rows)[0], 0.01))
    learner.network.normalizer.update(rollout["observations"].flatten(0, 1).to(META))
