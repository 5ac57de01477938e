"""PPO of Stable-Baselines3 on our fights: as fast as it is with our network and batch, and as it comes."""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from msgspec.structs import replace

from soulsai.acting.policy import Policy
from soulsai.acting.world import World
from soulsai.algorithms.ppo.config import PPOConfig
from soulsai.config import with_settings
from soulsai.config.schema import Config
from soulsai.learning.loop import build_loop
from soulsai.learning.scoring import evaluate_policy
from soulsai.learning.wiring import build_world, build_worlds
from soulsgym.batch import Step

PACKAGE = "stable_baselines3"
FEWEST_ROUNDS = 3
SAME_NETWORK = ["network.hidden=[256, 256]", "network.separate=true", "ppo.minibatch=1024", "ppo.epochs=4"]
"""Its MlpPolicy has separate networks for policy and value; so has ours here."""

CHECK_EVERY_S = 2.0
CHECK_FIGHTS = 200
CHECK_SEED = 0x7261_6365
HALF = 0.5
OWN_LIMIT_S = 300.0
PEER_FIGHTS = 64
PEER_TIMES_OURS = 10.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Pace:
    """Medians of whole iterations."""

    steps_per_s: float
    decisions_per_s: float


@dataclass(frozen=True)
class Throughput:
    """Three that took turns."""

    ours: Pace
    theirs: Pace  # steps without a choice merged, as for ours: the same work
    theirs_by_step: Pace  # every step a decision, as it would meet the environment without our loop


@dataclass(frozen=True)
class Lap:
    """Seconds of training until half of the full fights were won, or None, and how far it came."""

    reached_s: float | None
    trained_s: float
    win_rate: float


def is_installed() -> bool:
    """Can the peer be measured?"""
    return importlib.util.find_spec(PACKAGE) is not None


def measure_throughput(config: Config, seconds: float) -> Throughput:
    """Ours and theirs in turns: same network, batch, epochs, fights, rollout, reward and encoding."""
    same = with_settings(config, [*SAME_NETWORK, "run.device=cpu"])
    loop = build_loop(same, *build_worlds(same))
    loop.begin()
    # Ours shares its work out itself, as in training.
    players = [_Player(loop.iterate, lambda: loop.counters.steps, threads=1), _peer_player(same)]
    players.append(_peer_player(with_settings(same, ["fight.decisions=false"])))
    begun_s, rounds = time.perf_counter(), 0
    while rounds <= FEWEST_ROUNDS or time.perf_counter() - begun_s < seconds:
        for player in players:
            player.play()
        rounds += 1
    loop.source.close()
    return Throughput(*(player.pace(loop.algorithm.rows_of_update(same)) for player in players))


class _Player:
    """Whole iterations of one learner, timed."""

    def __init__(self, iterate: Callable[[], object], steps: Callable[[], int], threads: int = 0) -> None:
        """With `threads` of torch, or as many as there are."""
        self._iterate, self._steps, self._threads = iterate, steps, threads or torch.get_num_threads()
        self._times: list[tuple[float, int]] = []

    def play(self) -> None:
        before, threads = self._steps(), torch.get_num_threads()
        torch.set_num_threads(self._threads)
        taken_s = _seconds_of(self._iterate)
        torch.set_num_threads(threads)
        self._times.append((taken_s, self._steps() - before))

    def pace(self, decisions: int) -> Pace:
        """Without the first iteration, which warms up."""
        times = self._times[1:]
        return Pace(
            statistics.median(steps / taken_s for taken_s, steps in times),
            statistics.median(decisions / taken_s for taken_s, _ in times),
        )


def _peer_player(config: Config) -> _Player:
    world = Counted(build_world(config))
    model = same_peer(config, world)
    return _Player(lambda: learn_once(model), lambda: world.steps)


def race(config: Config, say: Say) -> tuple[Lap, Lap | None]:
    """Who first wins half of the full fights, ours or theirs with its defaults; theirs has ten times our time."""
    ours = _our_lap(config, say)
    if ours.reached_s is None:
        return ours, None
    return ours, _their_lap(config, ours.reached_s * PEER_TIMES_OURS, say)


def run_lap(train: Callable[[], object], win_rate: Callable[[], float], limit_s: float, say: Say) -> Lap:
    """Train and look now and then, not counting the looking; two looks in a row must agree."""
    trained_s = looked_s = 0.0
    reached_s: float | None = None
    while True:
        trained_s += _seconds_of(train)
        if trained_s - looked_s < CHECK_EVERY_S:
            continue
        looked_s, rate = trained_s, win_rate()
        say(f"  after {trained_s:.0f} s of training {rate:.1%} of {CHECK_FIGHTS} fights are won")
        if rate >= HALF and reached_s is not None:
            return Lap(reached_s, trained_s, rate)
        reached_s = trained_s if rate >= HALF else None
        if reached_s is None and trained_s >= limit_s:
            return Lap(None, trained_s, rate)


class Counted:
    """A world that counts its environment steps."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.number, self.observation_size, self.num_actions = world.number, world.observation_size, world.num_actions
        self.steps = 0

    @property
    def observations(self) -> npt.NDArray[np.float32]:
        """What is seen now."""
        return self._world.observations

    def reset(self, seed: int) -> None:
        """Begin all episodes."""
        self._world.reset(seed)

    def step(self, actions: npt.NDArray[np.int64]) -> Step:
        """Play on in all of them."""
        step = self._world.step(actions)
        self.steps += int(step.steps.sum())
        return step

    def close(self) -> None:
        """Release the world."""
        self._world.close()


class PeerPolicy:
    """The greedy policy of the peer, which knows no masks."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def choose(self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The most probable action of every row."""
        return np.asarray(self._model.predict(observations, deterministic=True)[0], np.int64)


def same_peer(config: Config, world: Counted) -> Any:
    """Its PPO with our network, batch, epochs and rollout."""
    ppo = config.section(PPOConfig)
    return importlib.import_module(PACKAGE).PPO(
        "MlpPolicy",
        peer_environment(world, config.run.seed),
        learning_rate=ppo.learning_rate,
        n_steps=ppo.rollout,
        batch_size=ppo.minibatch,
        n_epochs=ppo.epochs,
        gamma=ppo.gamma,
        gae_lambda=ppo.lam,
        ent_coef=ppo.entropy,
        policy_kwargs={"net_arch": list(config.network.hidden), "activation_fn": torch.nn.ReLU},
        seed=config.run.seed,
        device="cpu",
    )


def peer_environment(world: Counted, seed: int) -> Any:
    """Our fights as an environment of the peer's kind, which must inherit from its own class."""
    base: Any = importlib.import_module(f"{PACKAGE}.common.vec_env").VecEnv
    from gymnasium.spaces import Box, Discrete

    class FightsForPeer(base):  # type: ignore[misc]
        def __init__(self) -> None:
            self._actions = np.zeros(world.number, np.int64)
            seen = Box(-np.inf, np.inf, (world.observation_size,), np.float32)
            super().__init__(world.number, seen, Discrete(world.num_actions))

        def reset(self) -> npt.NDArray[np.float32]:
            world.reset(seed)
            return world.observations.copy()

        def step_async(self, actions: npt.NDArray[np.int64]) -> None:
            self._actions = actions

        def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
            step = world.step(self._actions)
            # Copies: it keeps the last observations while the next step is made.
            return world.observations.copy(), step.rewards.copy(), step.ended.copy(), infos_of(step)

        def close(self) -> None:
            world.close()

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [getattr(self, attr_name, None)] * world.number

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            setattr(self, attr_name, value)

        def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **keywords: Any) -> list[Any]:
            return [None] * world.number

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * world.number

    return FightsForPeer()


def infos_of(step: Step) -> list[dict[str, Any]]:
    """What the peer wants to know of episodes that ended."""
    infos: list[dict[str, Any]] = [{}] * len(step.ended)
    for i in np.flatnonzero(step.ended):
        cut = bool(step.truncated[i] and not step.terminated[i])
        infos[i] = {"terminal_observation": step.final_observations[i].copy(), "TimeLimit.truncated": cut}
    return infos


def _our_lap(config: Config, say: Say) -> Lap:
    loop = build_loop(config, *build_worlds(config))
    loop.begin()
    lap = run_lap(loop.iterate, lambda: _win_rate(config, loop.policy()), OWN_LIMIT_S, say)
    loop.source.close()
    return lap


def _their_lap(config: Config, limit_s: float, say: Say) -> Lap:
    plain = peer_config(config)
    say(f"race: Stable-Baselines3, {PEER_FIGHTS} fights, for at most about {limit_s:.0f} s of training")
    world = Counted(build_world(plain))
    model = default_peer(plain, world)
    lap = run_lap(lambda: learn_once(model), lambda: _win_rate(plain, PeerPolicy(model)), limit_s, say)
    world.close()
    return lap


def peer_config(config: Config) -> Config:
    """The same fights, but as many as the peer gets, without masks, and every step a decision."""
    fight = replace(config.fight, number=PEER_FIGHTS, decisions=False)
    return replace(config, fight=fight, actions=replace(config.actions, masks=False))


def default_peer(config: Config, world: Counted) -> Any:
    """Its PPO as it comes."""
    environment = peer_environment(world, config.run.seed)
    return importlib.import_module(PACKAGE).PPO("MlpPolicy", environment, seed=config.run.seed, device="cpu")


def learn_once(model: Any) -> None:
    """Its next iteration: it never stops within one, so that a single step asks for all of it."""
    model.learn(1, reset_num_timesteps=False)


def _win_rate(config: Config, policy: Policy) -> float:
    return float(evaluate_policy(config, policy, CHECK_FIGHTS, seed=CHECK_SEED).win_rate)


def _seconds_of(work: Callable[[], object]) -> float:
    begun_s = time.perf_counter()
    work()
    return time.perf_counter() - begun_s
