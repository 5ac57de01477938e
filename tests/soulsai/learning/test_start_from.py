"""Training that begins with the policy of another run."""

import pytest
import torch

from soulsai.errors import ConfigError, RunError
from soulsai.learning.loading import load_networks
from soulsai.runs.run import Run
from soulsai.runtime import Fleet

SMALL = ("run.threads=1", "run.final_fights=0", "run.evaluate_every_steps=0")


@pytest.fixture(scope="module", params=["cartpole-ppo", "cartpole-dqn"])
def first(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("first") / request.param
    Fleet.begin(request.param, folder, [*SMALL, "run.steps=512"], check=False).train()
    return request.param, folder


def test_it_begins_with_the_weights_of_the_other(first, tmp_path):
    preset, folder = first
    settings = [*SMALL, "run.steps=1", "run.seed=7", f"run.start_from={folder}"]
    settings += ["ppo.learning_rate=1e-12"] if "ppo" in preset else []
    Fleet.begin(preset, tmp_path / "second", settings, check=False).train()
    before, after = (load_networks(Run.open(one))[1] for one in (folder, tmp_path / "second"))
    for name, network in before.items():
        for key, value in network.state_dict().items():
            if value.is_floating_point() and "normal" not in key:
                torch.testing.assert_close(after[name].state_dict()[key], value, rtol=0, atol=1e-5)


def test_a_run_that_does_not_suit(first, tmp_path):
    preset, folder = first
    other = "cartpole-dqn" if preset == "cartpole-ppo" else "cartpole-ppo"
    with pytest.raises(ConfigError, match="was trained by"):
        Fleet.begin(other, tmp_path / "a", [*SMALL, f"run.start_from={folder}"], check=False).train()
    with pytest.raises(RunError, match="does not fit"):
        Fleet.begin(
            preset, tmp_path / "b", [*SMALL, f"run.start_from={folder}", "network.hidden=[8]"], check=False
        ).train()
    with pytest.raises(RunError):
        Fleet.begin(preset, tmp_path / "c", [*SMALL, f"run.start_from={tmp_path / 'none'}"], check=False).train()
