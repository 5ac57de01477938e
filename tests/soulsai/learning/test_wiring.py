"""From a config to its parts."""

import shutil
from importlib import resources
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from soulsai.acting.gym_world import GymWorld
from soulsai.acting.world import FightWorld, sizes_of
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import load_preset, with_settings
from soulsai.errors import ConfigError
from soulsai.experience import Sizes
from soulsai.learning import wiring
from soulsai.learning.loop import build_loop, device_of
from soulsai.learning.preflight import findings
from soulsai.learning.wiring import build_world, environment_version, threads_of

ONE = ["fight.variants=['standard']", "ppo.minibatch=16"]


def config_of(preset, *settings):
    return with_settings(load_preset(preset), list(settings))


def test_worlds():
    fights = build_world(config_of("smoke", *ONE, "fight.number=6"))
    assert isinstance(fights, FightWorld)
    assert (fights.number, fights.num_actions, fights.batch.decisions) == (6, 20, True)
    world = build_world(config_of("cartpole-ppo", "ppo.minibatch=16", "gym.number=3"))
    assert isinstance(world, GymWorld)
    assert (world.number, world.observation_size, world.num_actions) == (3, 4, 2)


def test_variants_are_dealt_out_evenly():
    world = build_world(config_of("smoke", "fight.variants=['standard', 'hard']", "fight.number=5", "ppo.minibatch=16"))
    population = world.batch.population
    assert population.counts == (3, 2)
    assert [spec.variant for spec in population.specs] == ["standard", "hard"]


def test_drawn_files_have_their_share_of_the_fights():
    world = build_world(
        config_of("smoke", "fight.variants=['drawn:3', 'hard']", "fight.number=8", "ppo.minibatch=16",
                  "fight.draw_strength=0.5")
    )  # fmt: skip
    world.reset(1)
    population = world.batch.population
    assert population.counts == (2, 1, 1, 4)
    drawn = [spec.boss for spec in population.specs]
    assert all(one != other for one, other in combinations(drawn, 2))
    assert "strength 0.5" in population.specs[0].variant
    seeds = population.seeds.tolist()
    world.reset(2)
    assert not set(population.seeds.tolist()[:3]) & set(seeds[:3])
    world.step(world.masks.argmax(axis=1))
    world.close()


def test_a_version_of_the_environment_is_one_of_the_users_files(tmp_path):
    file = tmp_path / "my.toml"
    versions = []
    for hp in (700, 800, 700):
        file.write_text(f'[body]\nhp = {hp}\nsource = "guess"\n')
        versions.append(environment_version(config_of("smoke", f"fight.variants=['{file}']")))
    assert versions[0] == versions[2] != versions[1]
    assert versions[0] != environment_version(config_of("smoke"))


def test_a_version_of_the_environment_is_one_of_the_users_python_files(own_parts, tmp_path):
    first = environment_version(config_of("smoke", f"fight.parts=['{own_parts}']"))
    copy = own_parts.rename(tmp_path / "copy.py")
    assert environment_version(config_of("smoke", f"fight.parts=['{copy}']")) == first
    copy.write_text(copy.read_text() + "# more\n")
    assert environment_version(config_of("smoke", f"fight.parts=['{copy}']")) != first
    assert environment_version(config_of("smoke")) != first


@pytest.mark.parametrize("file", ["parts/encoders", "parts/rewards", "sim", "batch.py"])
def test_a_version_of_the_environment_is_one_of_the_code_that_shows_and_rewards(tmp_path, monkeypatch, file):
    """A worker whose encoder or reward has other code would send what means something else to the network."""
    package = Path(str(resources.files("soulsgym")))
    copy = shutil.copytree(package, tmp_path / "soulsgym", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(wiring.resources, "files", lambda name: copy)
    config = config_of("smoke")
    before = environment_version(config)
    assert environment_version(config) == before
    changed = next(iter(sorted((copy / file).rglob("*.py")))) if (copy / file).is_dir() else copy / file
    changed.write_text(changed.read_text("utf-8") + "\n# other\n", encoding="utf-8")
    assert environment_version(config) != before
    changed.write_text(changed.read_text("utf-8").removesuffix("\n# other\n"), encoding="utf-8")
    changed.write_bytes(changed.read_bytes().replace(b"\n", b"\r\n"))
    assert environment_version(config) == before  # as a checkout on Windows has it


def test_own_parts_reach_the_fights(own_parts):
    own = (
        "encoder.name=shares",
        "reward.preset=bold",
        "actions.preset=two",
        "fight.ending=early",
        "starts.name=anywhere",
    )
    world = build_world(
        config_of("smoke", *ONE, f"fight.parts=['{own_parts}']", *own, "fight.number=2", "fight.decisions=false")
    )
    assert (world.observation_size, world.num_actions, world.term_names) == (2, 2, ("dealt", "brave"))
    world.reset(0)
    ends = [world.step(np.zeros(2, np.int64)).truncated.any() for _ in range(20)]
    assert ends == [False] * 19 + [True]
    names = [finding.name for finding in findings(config_of("smoke", f"fight.parts=['{own_parts}']", *own))]
    assert "encoder-not-reset" not in names


@pytest.mark.parametrize("algorithm", ["ppo", "q"])
def test_a_boss_of_ones_own_is_looked_over_before_it_is_trained(sentinel, algorithm):
    own = (f"fight.boss={sentinel}", "fight.variants=['drawn:2', 'hard', 'standard']", "fight.number=4")
    config = config_of("smoke" if algorithm == "ppo" else "smoke-q", *own, "ppo.minibatch=16")
    assert "encoder-not-reset" not in [finding.name for finding in findings(config)]


def test_settings_reach_the_fights():
    world = build_world(
        config_of("smoke", *ONE, "fight.number=2", "fight.phase=2", "fight.full=false", "fight.decisions=false",
                  "actions.preset=no-parry", "encoder.history=2", "fight.step_limit=3", "reward.weights.combo=0.5",
                  "starts.mid_fight=0")
    )  # fmt: skip
    single = build_world(config_of("smoke", *ONE, "fight.number=2"))
    assert world.num_actions == 19
    assert world.observation_size == 2 * single.observation_size
    assert "combo" in world.term_names
    world.reset(0)
    assert world.batch.engine.fights["phase"].tolist() == [2, 2]
    ends = [world.step(np.full(2, 18)).truncated.tolist() for _ in range(3)]
    assert ends == [[False] * 2, [False] * 2, [True] * 2]


@pytest.mark.parametrize(
    ("preset", "networks"), [("smoke", ["network"]), ("smoke-q", ["network"]), ("recipe-soulsai", ["network", "twin"])]
)
def test_loops_and_networks_to_play_with(preset, networks):
    config = config_of(preset, *ONE, "fight.number=2", "network.hidden=[8]")
    world = build_world(config)
    loop = build_loop(config, world)
    assert loop.algorithm is algorithm_of(config)
    own = algorithm_of(config).networks(config, sizes_of(world))
    assert list(loop.learner.networks) == list(own) == networks
    for name, net in own.items():
        net.load_state_dict(loop.learner.networks[name].state_dict())


def test_quiet_policies_have_no_noise():
    config = config_of("smoke-q", "q.noisy=true", "network.hidden=[8]")
    networks = algorithm_of(config).networks(config, Sizes(3, 4, 1, 1))
    networks["network"].draw_noise(torch.Generator().manual_seed(0))
    noisy = networks["network"].means(torch.ones(1, 3))
    policy = algorithm_of(config).policy(networks)
    assert not torch.equal(policy.scores(torch.ones(1, 3)), noisy)
    assert not networks["network"].head.noise_in.any()


def test_threads_and_device(monkeypatch):
    assert threads_of(config_of("smoke", "run.threads=3")) == 3
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    assert threads_of(config_of("smoke")) == 7
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(config_of("smoke")).type == "cpu"
    with pytest.raises(
        ConfigError, match=r"run.device = 'cuda' but torch sees no CUDA device; use --set run.device=cpu"
    ):
        device_of(config_of("smoke", "run.device=cuda"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_of(config_of("smoke")).type == "cuda"
    assert device_of(config_of("smoke", "run.device=cpu")).type == "cpu"
