"""Runs for the tests of what is done with them: one really trained, others with random weights.

Imports are inside the fixtures: most tests here need none of this, and should not wait for it.
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from soulsai.transport.links import Account, LearnerLink, Marks

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-boss.md"
TINY = [
    "run.steps=1200",
    "run.threads=1",
    "run.evaluate_every_steps=600",
    "run.evaluation_fights=3",
    "run.final_fights=6",
    "fight.number=8",
    "fight.step_limit=300",
    "ppo.minibatch=64",
    "network.hidden=[16]",
]


class Silent:
    """Shows nothing."""

    def say(self, text):
        pass

    def show(self, progress):
        pass


def new_run(folder, preset, settings):
    from soulsai.config import config_to_toml, load_preset, with_settings
    from soulsai.runs.run import Run

    config = with_settings(load_preset(preset), settings)
    return config, Run.create(Path(folder), config_to_toml(config), preset=preset, command=["souls", "train", preset])


@pytest.fixture
def sentinel(tmp_path):
    """The file of a boss of the user's own, as the guide to a new boss makes it, with what must lie beside it."""
    from soulsgym.spec.fight import DATA

    folder = tmp_path / "my-boss"
    folder.mkdir()
    for place, text in re.findall(r"^```toml\n# (\S+)\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        name = Path(place).name
        ours = (DATA / "darksouls3" / name).read_text("utf-8") if (DATA / "darksouls3" / name).exists() else ""
        (folder / name).write_text(f"{ours}\n{text}", encoding="utf-8")
    return folder / "sentinel.toml"


OWN_PARTS = '''\
"""A reward term, a reward, an encoder, actions, an ending and starts."""

import numpy as np
from numba import njit

from soulsgym.parts.endings import FightOver
from soulsgym.parts.registry import register
from soulsgym.parts.rewards import term
from soulsgym.parts.starts import RandomPose


@term("brave", "1 for every step near the boss")
@njit
def brave(fight):
    return 1.0 if fight.step > 0 else 0.0


register("reward", "bold")({"dealt": 2.0, "brave": 0.5})
register("action set", "two")(["roll F", "light attack"])


@register("encoder", "shares")
def shares(fights):
    """The health of both."""
    return np.stack([fights["player_hp"][:, 0] / 1000.0, fights["boss_hp"][:, 0] / 2000.0], axis=1)


@register("ending", "early")
class Early(FightOver):
    """Cuts every fight off after 20 steps."""

    def of(self, fights):
        return np.zeros(len(fights), bool), fights["step"] >= 20

    def won(self, fights):
        return np.ones(len(fights), bool)


@register("starts", "anywhere")
def anywhere(n, spec):
    return RandomPose(n)
'''


@pytest.fixture
def own_parts(tmp_path):
    """A Python file of the user's with one part of every kind."""
    file = tmp_path / "my_parts.py"
    file.write_text(OWN_PARTS)
    return file


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The folder of a run that was really trained, to read only; `run` is a copy to write into."""
    from soulsai.learning.session import run_session

    config, run = new_run(tmp_path_factory.mktemp("trained") / "tiny", "smoke", TINY)
    outcome = run_session(run, config, resume=False, view=Silent(), stop=lambda: False, check=False)
    assert outcome.finished
    return run.folder


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the trained run."""
    from soulsai.runs.run import Run

    return Run.open(shutil.copytree(trained, tmp_path / "tiny"))


@pytest.fixture(scope="session")
def random_networks():
    """A function that builds the networks of a config with weights that make many actions the best now and then."""
    import torch

    from soulsai.algorithms.algorithm import algorithm_of
    from soulsai.experience import Sizes
    from soulsai.learning.loading import sizes_of

    def build(config, *, noise=False):
        networks = algorithm_of(config).networks(config, Sizes(*sizes_of(config), terms=0, number=1))
        generator = torch.Generator().manual_seed(7)
        for network in networks.values():
            for parameter in network.parameters():
                parameter.data.normal_(generator=generator)
            if network.normalizer is not None:
                network.normalizer.update(3.0 + 2.0 * torch.randn(64, sizes_of(config)[0], generator=generator))
            if noise:
                network.draw_noise(generator)
        return networks

    return build


@pytest.fixture
def make_run(tmp_path, random_networks):
    """A function that makes a run of a preset and settings, with random weights in its one checkpoint."""
    from soulsai.checkpoints.store import CheckpointStore
    from soulsai.runs.status import Status

    def make(preset, *settings, name="made", noise=False):
        config, run = new_run(tmp_path / name, preset, ["network.hidden=[8]", *settings])
        networks = random_networks(config, noise=noise)
        CheckpointStore(run.checkpoints).save(10, {key: net.state_dict() for key, net in networks.items()}, {})
        run.write_status(Status("finished", 10, 10))
        return run

    return make


class MemoryLink(LearnerLink):
    """Both ends of a transport in one process: nothing waits, everything is remembered."""

    run, worker, is_near, is_waiting, has_sent = "run", "w.1.abcdef", True, False, False

    def __init__(self):
        super().__init__()
        self.messages, self.stored, self.dropped, self.repeated = [], [], [], []
        self.seen = Marks()
        self.policies, self.reports, self.described = [], [], []
        self.is_open, self.stopping, self.taken = True, False, 0
        self.stop_after = None  # messages

    def send(self, message):
        self.messages.append(message)
        self.stopping = self.stopping or len(self.messages) == self.stop_after
        return not self.stopping

    def newest(self):
        if len(self.policies) == self.taken:
            return None
        self.taken = len(self.policies)
        return self.policies[-1][1]

    def report(self, progress):
        self.reports.append(progress)

    def receive(self, limit_s):
        """Those sent since the last time, but for repeats."""
        came, self.messages = self.messages, []
        new = []
        for message in came:
            stored = message.sequence <= self.marks().get(message.worker, 0)
            is_new = self.seen.move(message.worker, message.sequence) and not stored
            (new if is_new else self.repeated).append(replace(message, sent_s=time.time()))
        return new

    def restore(self, marks):
        super().restore(marks)
        self.seen = Marks(marks)

    def settle(self, stored, dropped=()):
        self.stored += stored
        self.dropped += dropped

    def publish(self, version, frame):
        self.policies.append((version, frame))

    def gate(self, *, is_open):
        self.is_open = is_open

    def describe(self, values):
        self.described.append(values)

    def accounts(self):
        rows = sum(message.rows for message in self.stored)
        return [Account(self.worker, rows, rows, {})]

    def workers(self):
        return 1

    def close(self, patience_s=0.0):
        pass


@pytest.fixture
def memory_link():
    """A transport without a process boundary."""
    return MemoryLink()
