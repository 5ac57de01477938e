"""Thinking a recorded fight through: the same sights, and the same choices, as when it was played."""

import numpy as np
import pytest

from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import load_preset, with_settings
from soulsai.errors import ConfigError
from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.learning.scoring import evaluate_policy
from soulsai.learning.thinking import think
from soulsai.learning.wiring import build_fighter
from soulsgym.recordings.recording import Recording
from soulsgym.state import Outcome

KINDS = {
    "ppo": ("smoke",),
    "separate and normalised": ("smoke", "network.separate=true", "network.normalize=true", "network.layer_norm=true"),
    "every step, tanh": ("smoke", "fight.decisions=false", "network.activation=tanh"),
    "no masks": ("smoke", "actions.masks=false", "actions.preset=reduced"),
    "no hidden layers": ("smoke", "network.hidden=[]"),
    "history": ("smoke", "encoder.history=3"),
    "dqn": ("smoke-q",),
    "dueling": ("dddqn",),
    "twins": ("smoke-q", "q.clipped=true"),
    "clipped-dqn": ("clipped-dqn",),
    "quantile": ("smoke-q", "q.distribution=quantile", "q.atoms=5", "q.loss=huber"),
}


def played(config, policy, fights=2, **changes):
    recorder = FightRecorder(fights)
    evaluate_policy(config, policy, fights, seed=3, recorder=recorder, **{"step_limit": 120} | changes)
    return recorder


@pytest.fixture
def setting(random_networks):
    def make(preset, *settings):
        sizes = () if any("hidden" in text for text in settings) else ("network.hidden=[12, 7]",)
        config = with_settings(load_preset(preset), [*sizes, *settings])
        return config, algorithm_of(config).policy(random_networks(config))

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_chooses_what_was_played(setting, kind):
    config, policy = setting(*KINDS[kind])
    recorder = played(config, policy)
    for number in range(2):
        recording = recorder.fight(number)
        thoughts = think(config, policy, recording)
        assert len(thoughts) > 3
        chosen = np.array(thoughts.actions)[thoughts.chosen]
        assert chosen.tolist() == recording.actions[thoughts.records + 1].tolist()
        rest = np.setdiff1d(np.arange(len(recording) - 1), thoughts.records)
        assert (recording.actions[rest + 1] == 19).all(), "without a choice nothing is pressed"
        if config.network.hidden:
            assert len(set(chosen.tolist())) > 1, "one action that is always the best proves little"


@pytest.mark.parametrize("kind", KINDS)
def test_layers_and_scores(setting, kind):
    config, policy = setting(*KINDS[kind])
    recording = played(config, policy, 1).fight(0)
    thoughts = think(config, policy, recording)
    sizes = [layer.shades.shape for layer in thoughts.layers]
    assert all(size[0] == len(thoughts) for size in sizes)
    names = [layer.name for layer in thoughts.layers]
    hidden = list(config.network.hidden)
    if kind == "separate and normalised":
        assert names == ["observation", "layer 1", "layer 2", "value layer 1", "value layer 2"]
    elif len(policy.networks) > 1:
        assert names == ["observation", "layer 1", "layer 2", "twin layer 1", "twin layer 2"]
    else:
        assert names == ["observation", *(f"layer {i + 1}" for i in range(len(hidden)))]
        assert [size[1] for size in sizes[1:]] == hidden
    assert len(thoughts.sights) == sizes[0][1]
    if config.algorithm == "ppo":
        assert thoughts.kind == "probability"
        assert thoughts.scores.sum(axis=1) == pytest.approx(np.ones(len(thoughts)), abs=1e-5)
        assert (thoughts.scores[~thoughts.open] == 0.0).all()
    else:
        assert thoughts.kind == "q"
        best = np.where(thoughts.open, thoughts.scores, -np.inf).max(axis=1)
        assert thoughts.value == pytest.approx(best)
    assert np.isfinite(thoughts.value).all()


def test_activations_are_those_of_the_network(setting):
    import torch

    config, policy = setting("smoke")
    recording = played(config, policy, 1).fight(0)
    thoughts = think(config, policy, recording)
    network = policy.networks[0]
    with torch.no_grad():
        seen = torch.from_numpy(thoughts.layers[0].values())
        first = network.torso[1](network.torso[0](seen)).numpy()
        second = network.torso[3](network.torso[2](torch.from_numpy(first))).numpy()
    for layer, wanted in zip(thoughts.layers[1:], (first, second), strict=True):
        # 256 shades of a scale that is the largest value: an error of its 1/127 in what goes in and what comes out.
        assert np.abs(layer.values() - wanted).max() < 0.05 * np.abs(wanted).max()


def test_leaves_no_hooks(setting):
    config, policy = setting("smoke")
    think(config, policy, played(config, policy, 1).fight(0))
    assert not any(module._forward_hooks for module in policy.networks[0].modules())


def test_fights_of_others_and_several_of_them(setting):
    """It thinks about whatever was played, also with actions that it does not have."""
    config, policy = setting("smoke", "actions.preset=no-parry")
    recorder = FightRecorder(2)
    evaluate(ScriptedFighter("duellist"), 2, seed=1, step_limit=150, recorder=recorder)
    parts = [recorder.fight(number) for number in range(2)]
    both = Recording(
        np.concatenate([part.fights for part in parts]),
        np.concatenate([part.actions for part in parts]),
        np.repeat([0, 1], [len(part) for part in parts]),
    )
    both.actions[5] = 18  # a parry, which this agent does not know
    thoughts = think(config, policy, both)
    second = think(config, policy, parts[1])
    later = thoughts.of(len(parts[0]), len(both))
    assert later.records.tolist() == second.records.tolist()
    assert np.array_equal(later.chosen, second.chosen)


def test_as_seen_by_the_fighter(setting):
    """The same sights as those of the fighter that plays, step by step."""
    config, policy = setting("smoke")
    recording = played(config, policy, 1).fight(0)
    seen = []

    class Noting:
        def choose(self, observations, masks):
            seen.append(observations.copy())
            return policy.choose(observations, masks)

    fighter = build_fighter(config, Noting())
    fighter.begin(recording.fights[:1], np.ones(1, bool))
    for i in range(len(recording) - 1):
        fighter.act(recording.fights[i : i + 1])
    first = think(config, policy, recording).layers[0]
    assert np.abs(first.values() - np.concatenate(seen)).max() <= (first.scale / 127).max()


def test_a_fight_without_a_decision(setting):
    config, policy = setting("smoke")
    recording = played(config, policy, 1).fight(0)
    recording.fights["outcome"][:] = Outcome.DIED
    thoughts = think(config, policy, recording)
    assert len(thoughts) == 0
    assert thoughts.scores.shape == (0, len(thoughts.actions))


def test_a_network_that_diverged(setting):
    config, policy = setting("smoke")
    recording = played(config, policy, 1).fight(0)
    for parameter in policy.networks[0].parameters():
        parameter.data.fill_(float("nan"))
    thoughts = think(config, policy, recording)
    assert np.isfinite(thoughts.scores).all()
    assert np.isfinite(thoughts.value).all()


def test_no_fights_in_a_gym(setting):
    config = load_preset("cartpole-ppo")
    with pytest.raises(ConfigError, match="has no fights to think about"):
        think(config, None, None)
