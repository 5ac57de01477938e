"""Policies from runs: the right weights, quiet, and a sentence when they do not fit."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from soulsai.checkpoints.store import CheckpointStore
from soulsai.config import config_from_toml, config_to_toml, load_preset, with_settings
from soulsai.errors import RunError
from soulsai.evaluation import Evaluation, ScriptedFighter, evaluate
from soulsai.learning.candidates import load_candidate
from soulsai.learning.loading import load_networks, load_policy, sizes_of
from soulsai.learning.wiring import build_fighter
from soulsai.runs.run import Run
from soulsai.runs.summary import open_run
from soulsgym.errors import MisuseError


def save_with_other_best(run):
    """A newer checkpoint in which the best policy is another one than the newest."""
    store = CheckpointStore(run.checkpoints)
    saved = store.load()
    best = {key: tensor + 1.0 for key, tensor in saved.parts["best"].items()}
    store.save(saved.number + 1, {"network": saved.parts["network"], "best": best}, saved.state)
    return saved.parts["network"], best


def change_config(run, setting):
    config = with_settings(config_from_toml(run.config_toml, "config.toml"), [setting])
    (run.folder / "config.toml").write_text(config_to_toml(config))


def test_loaded_fighter_plays_as_at_the_end_of_training(trained):
    run = Run.open(trained)
    final = next(Evaluation.from_json(text) for name, text in run.evaluations() if name.endswith("-final"))
    settings = asdict(final.settings)
    assert settings.pop("engine") == "sim"
    found = evaluate(build_fighter(*load_policy(run)), **settings)
    assert found.to_json() == final.to_json()


def test_best_policy_unless_the_newest_is_asked_for(run):
    newest, best = save_with_other_best(run)
    _, kept = load_networks(run)
    _, last = load_networks(run, latest=True)
    assert kept["network"].state_dict().keys() == newest.keys()
    for key, tensor in newest.items():
        assert torch.equal(kept["network"].state_dict()[key], best[f"network.{key}"])
        assert torch.equal(last["network"].state_dict()[key], tensor)


def test_newest_policy_before_the_first_evaluation(make_run):
    run = make_run("smoke")
    saved = CheckpointStore(run.checkpoints).load()
    _, networks = load_networks(run)
    assert torch.equal(networks["network"].policy_head.weight, saved.parts["network"]["policy_head.weight"])


@pytest.mark.parametrize("latest", [False, True])
def test_twins_are_both_loaded(make_run, latest):
    run = make_run("smoke-q", "q.twin=true", "q.double=false")
    store = CheckpointStore(run.checkpoints)
    parts = store.load().parts
    best = {f"{name}.{key}": value - 1.0 for name, part in parts.items() for key, value in part.items()}
    store.save(11, {**parts, "best": best}, {})
    _, networks = load_networks(run, latest=latest)
    for name in ("network", "twin"):
        expected = parts[name]["head.weight"] - (0.0 if latest else 1.0)
        assert torch.equal(networks[name].head.weight, expected)
    assert not torch.equal(networks["network"].head.weight, networks["twin"].head.weight)


def test_noise_is_quiet(make_run):
    run = make_run("smoke-q", "q.noisy=true", noise=True)
    assert CheckpointStore(run.checkpoints).load().parts["network"]["head.noise_in"].any()
    _, networks = load_networks(run)
    config, policy = load_policy(run)
    observations = torch.randn(5, sizes_of(config)[0])
    networks["network"].quiet()
    assert torch.equal(policy.scores(observations), networks["network"].means(observations))


def test_damaged_checkpoint_is_named_and_the_one_before_is_used(run):
    newest, _ = save_with_other_best(run)
    store = CheckpointStore(run.checkpoints)
    number = store.numbers()[-1]
    (run.checkpoints / f"{number:012d}" / "best.safetensors").write_bytes(b"gone")
    heard = []
    _, networks = load_networks(run, warn=heard.append)
    assert torch.equal(networks["network"].policy_head.bias, newest["policy_head.bias"])
    assert len(heard) == 1
    assert f"checkpoint {number} is damaged" in heard[0]


def test_run_without_checkpoint(tmp_path):
    text = config_to_toml(load_preset("smoke"))
    run = Run.create(tmp_path / "new", text, preset="smoke", command=[])
    with pytest.raises(RunError, match="new: there is no checkpoint yet: train the run first"):
        load_policy(run)


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("network.hidden=[32]", r"policy_head\.weight is \(20, 16\) instead of \(20, 32\)"),
        ("actions.preset=reduced", r"policy_head\.bias is \(20,\) instead of \(16,\)"),
        ("network.separate=true", r"value_torso\.0\.bias is nothing instead of \(16,\)"),
    ],
)
def test_incompatible_checkpoint_is_one_sentence(run, setting, what):
    change_config(run, setting)
    with pytest.raises(RunError, match=what) as caught:
        load_policy(run)
    assert "\n" not in str(caught.value)


def test_checkpoint_of_another_algorithm(run):
    change_config(run, "algorithm=q")
    with pytest.raises(RunError, match=r"does not fit the run's config\.toml"):
        load_policy(run)


def test_sizes():
    assert sizes_of(load_preset("cartpole-ppo")) == (4, 2)
    fight = with_settings(load_preset("smoke"), ["encoder.name=soulsai74", "actions.preset=reduced"])
    assert sizes_of(fight) == (74, 16)


def test_gym_run_is_no_fighter(make_run):
    run = make_run("cartpole-ppo")
    with pytest.raises(MisuseError, match=r"made plays CartPole-v1, not fights"):
        load_candidate(str(run.folder)).fighter("iudex")
    assert load_candidate(str(run.folder)).is_gym


def test_contestants(run):
    assert isinstance(load_candidate("player:duellist").fighter("iudex"), ScriptedFighter)
    candidate = load_candidate(str(run.folder))
    assert (candidate.name, candidate.run.folder) == ("tiny", run.folder)
    actions = candidate.policy.choose(np.zeros((2, sizes_of(candidate.config)[0]), np.float32), np.eye(2, 20) > 0)
    assert actions.tolist() == [0, 1]
    with pytest.raises(MisuseError, match="did you mean 'duellist'"):
        load_candidate("player:duelist")


def test_run_by_its_name_alone(run, monkeypatch):
    (run.folder.parent / "runs").mkdir()
    run.folder.rename(run.folder.parent / "runs" / "tiny")
    monkeypatch.chdir(run.folder.parent)
    assert open_run("tiny").name == "tiny"
    with pytest.raises(RunError, match="other: there is no such run"):
        open_run("other")
