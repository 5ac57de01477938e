"""Where everything is put together, without torch: from a config to worlds, workers and fighters."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib import resources
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from soulsai.acting.actor import Actor
from soulsai.acting.gym_world import GymWorld
from soulsai.acting.worker import Worker
from soulsai.acting.world import FightWorld, JointWorld, World, sizes_of
from soulsai.algorithms.algorithm import algorithm_of, threads_of
from soulsai.config.schema import DRAWN, Config, StartsConfig
from soulsai.evaluation.fighter import PolicyFighter
from soulsai.runs.fight_files import files_of, parts_of
from soulsai.transport.links import WorkerLink
from soulsgym.batch import FightBatch
from soulsgym.parts import FightParts
from soulsgym.parts.actions import ActionSet, make_actions
from soulsgym.parts.encoders import Encoder, make_encoder
from soulsgym.parts.endings import Ending, make_ending
from soulsgym.parts.files import parts_digest, parts_in
from soulsgym.parts.rewards import Reward, make_reward
from soulsgym.parts.starts import Starts, make_starts
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import FightSpec, load_fight
from soulsgym.spec.population import Population, drawn_count

if TYPE_CHECKING:
    from soulsai.acting.policy import Policy
    from soulsgym.target import TargetOptions

CODE = ("batch.py", "parts", "sim")
"""What of soulsgym, beside its data, decides how fights go and what is seen of them."""
FIGHTS_WORTH_A_THREAD = 256
"""Fewer fights are stepped sooner than another thread is woken."""


def build_world(config: Config, game: TargetOptions | None = None) -> World:
    """The episodes to learn from; `game` says how the running game is played on this machine."""
    if config.world == "gym":
        return GymWorld(config.gym.id, config.gym.number, config.gym.kwargs)
    if config.fight.engine == "game":
        return _game_fights(config, game)
    if not config.fight.bosses:
        return _fights(config)
    numbers = _split_evenly(config.fight.number, len(config.fight.bosses))
    return JointWorld(
        [_fights(against(config, boss, number)) for boss, number in zip(config.fight.bosses, numbers, strict=True)]
    )


def against(config: Config, boss: str, number: int | None = None) -> Config:
    """The same for the fights with one of its bosses, which a network for all of them sees as before."""
    fight = replace(config.fight, boss=boss)
    return replace(config, fight=fight if number is None else replace(fight, number=number))


def _split_evenly(number: int, among: int) -> list[int]:
    return [number // among + (i < number % among) for i in range(among)]


def build_worlds(config: Config, game: TargetOptions | None = None) -> list[World]:
    """Worlds to play in at once: the many fights of a simulator are shared out among the threads."""
    fight = config.fight
    is_simulated = config.world == "fight" and fight.engine == "sim"
    count = min(threads_of(config), fight.number // FIGHTS_WORTH_A_THREAD) if is_simulated else 1
    if count <= 1:
        return [build_world(config, game)]
    run = replace(config.run, threads=1)
    variants = tuple(_variant_share(variant, count) for variant in fight.variants)
    return [
        build_world(replace(config, run=run, fight=replace(fight, number=number, variants=variants)))
        for number in _split_evenly(fight.number, count)
    ]


def _variant_share(variant: str, count: int) -> str:
    drawn = drawn_count(variant)
    return variant if drawn is None else f"{DRAWN}{-(-drawn // count)}"


def can_be_checked(config: Config) -> bool:
    """Whether what workers played is to be played again, and comes out the same: parts of the user's may roll dice."""
    fight = config.fight
    is_simulated = config.world == "fight" and fight.engine == "sim" and not fight.parts
    return config.fleet.spot_checks == "on" and is_simulated


def config_of_worker(config: Config) -> Config:
    """The same for the world that a worker plays in."""
    own = replace(config, run=replace(config.run, threads=1), fight=replace(config.fight, engine="sim"))
    if number := config.fleet.number:
        fight = replace(own.fight, number=max(number, fewest_fights(config)))
        own = replace(own, fight=fight, gym=replace(config.gym, number=number))
    return own


def build_worker(
    config: Config,
    link: WorkerLink,
    *,
    pace: float = 0.0,
    touch: Callable[[], None] = lambda: None,
    game: TargetOptions | None = None,
    environment: str = "",
) -> Worker:
    """A worker in the simulator or a Gymnasium environment, or with `game` in the game that runs on this machine.

    `pace` is steps a second, 0 as fast as it can; `environment` is its version, where the learner asks for it.
    """
    own = config_of_worker(config)
    if game:
        own = replace(own, fight=replace(own.fight, engine="game", number=1, variants=(config.fight.main_variant,)))
    algorithm, world = algorithm_of(config), build_world(smallest(config))
    sizes = sizes_of(world)
    world.close()
    networks = algorithm.light_networks(config, sizes)

    def make_actor(world: World, seed: Sequence[int]) -> Actor:
        actor = algorithm.actor(config, world, networks, seed)
        if game:
            actor.stop = lambda: link.stopping  # a step takes a moment there: a rollout would be a long wait
        return actor

    return Worker(
        config,
        link,
        schema=algorithm.schema(config, sizes),
        make_world=lambda: build_world(own, game),
        make_actor=make_actor,
        networks=networks,
        pace=pace,
        touch=touch,
        environment=environment if can_be_checked(config) and not game else "",
    )


def compile_parts(config: Config) -> None:
    """Let everything compiled be compiled, or read from the cache, before it is needed."""
    world = build_world(smallest(config))
    world.reset(0)
    world.step(world.masks.argmax(axis=1))
    world.close()


def compile_worker(config: Config) -> None:
    """The same for everything that a worker does."""
    algorithm, world = algorithm_of(config), build_world(smallest(config))
    world.reset(0)
    networks = algorithm.light_networks(config, sizes_of(world))
    for network in networks.values():
        network.clear()
    algorithm.actor(config, world, networks, [0]).play()
    world.close()


def smallest(config: Config) -> Config:
    """The same with as few fights as can be, to look at what they are like."""
    fight = replace(config.fight, engine="sim", number=max(2, fewest_fights(config)))
    return replace(config, fight=fight, gym=replace(config.gym, number=1))


def fewest_fights(config: Config) -> int:
    """How many fights it takes for every boss and each of his variants to be among them."""
    return len(config.fight.variants) * len(config.fight.all_bosses)


def environment_version(config: Config) -> str:
    """A digest of what decides how fights, or Gymnasium episodes, go and look: equal ones are the same to a network."""
    digest = hashlib.sha256()
    if config.world == "gym":
        world = build_world(smallest(config))
        digest.update(f"{config.gym.id} {world.observation_size} {world.num_actions}".encode())
        world.close()
        return digest.hexdigest()[:16]
    folder = resources.files("soulsgym") / "data"
    with resources.as_file(folder) as data:
        for file in sorted(data.rglob("*.toml")):
            digest.update(file.relative_to(data).as_posix().encode())
            digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    for place, text in sorted(files_of(config).items()):
        digest.update(f"{place}\0{text}\0".encode())
    for text in parts_of(config).values():
        digest.update(parts_digest(text).encode())
    for code in _code():
        digest.update(code)
    world = build_world(smallest(config))
    digest.update(f"{world.observation_size} {world.num_actions} {world.term_names}".encode())
    world.close()
    return digest.hexdigest()[:16]


def code_digest() -> str:
    """A digest of the code that decides how fights go and what is seen of them."""
    digest = hashlib.sha256()
    for text in _code():
        digest.update(text)
    return digest.hexdigest()[:16]


def _code() -> Iterator[bytes]:
    for module in CODE:
        with resources.as_file(resources.files("soulsgym") / module) as code:
            for file in sorted(code.rglob("*.py")) if code.is_dir() else [code]:
                yield file.read_bytes().replace(b"\r\n", b"\n")


def build_actions(config: Config) -> ActionSet:
    """The actions the agent chooses from."""
    with parts_in(config.fight.parts):
        return make_actions(config.actions.preset, config.actions.names)


def main_spec(config: Config) -> FightSpec:
    """The file that the agent is measured on; what it sees and is rewarded for has the same size in all of them."""
    return load_fight(config.fight.main_boss, config.fight.main_variant, moves=config.fight.engine == "sim")


def build_encoder(config: Config, spec: FightSpec, n: int) -> Encoder:
    """What the agent sees."""
    with parts_in(config.fight.parts):
        return make_encoder(config.encoder.name, n, spec, history=config.encoder.history, bosses=config.fight.bosses)


def build_reward(config: Config, spec: FightSpec, n: int, missing: Collection[str] = ()) -> Reward:
    """What is good and what is bad; `missing` are fields of FIGHT that the engine does not tell."""
    with parts_in(config.fight.parts):
        return make_reward(config.reward.preset, n, spec, weights=config.reward.weights, missing=missing)


def build_ending(config: Config, step_limit: int) -> Ending:
    """What ends a fight of training."""
    fight = config.fight
    with parts_in(fight.parts):
        return make_ending({"name": fight.ending, "step_limit": step_limit, "no_hit": fight.no_hit})


def build_starts(config: Config, spec: FightSpec, n: int) -> Starts:
    """How fights of training begin."""
    fight, starts = config.fight, config.starts
    given = asdict(starts) if starts.name == StartsConfig().name else starts.name
    with parts_in(fight.parts):
        return make_starts(given, n, spec, full=fight.full, phase=fight.phase)


def game_parts(config: Config, game: TargetOptions | None = None) -> FightParts:
    """The parts of a fight in the running game; MisuseError if the reward needs what a game does not tell."""
    from soulsgym.game.engine import GameOptions
    from soulsgym.target import fields_not_told

    spec = main_spec(config)
    return build_parts(config, spec, 1, fields_not_told(spec, game or GameOptions()))


def build_fighter(config: Config, policy: Policy) -> PolicyFighter:
    """A fighter that sees and acts as in training."""
    spec = main_spec(config)
    return PolicyFighter(
        policy,
        lambda n: build_encoder(config, spec, n),
        build_actions(config),
        decisions=config.fight.decisions,
        masks=config.actions.masks,
    )


def _fights(config: Config) -> FightWorld:
    fight, n = config.fight, config.fight.number
    population = Population(fight.boss, fight.variants, n, strength=fight.draw_strength)
    engine = SimEngine(
        population.specs,
        n,
        counts=population.counts,
        phase=fight.phase,
        changes=fight.full,
        randomize=fight.randomize,
        threads=threads_of(config) if n > FIGHTS_WORTH_A_THREAD else 1,
    )
    parts = build_parts(config, main_spec(config), n)
    return FightWorld(FightBatch(engine, parts, decisions=fight.decisions, population=population))


def _game_fights(config: Config, game: TargetOptions | None) -> FightWorld:
    from soulsgym.game.engine import GameOptions
    from soulsgym.target import open_target

    fight, parts = config.fight, game_parts(config, game)
    engine = open_target(main_spec(config), game or GameOptions(), phase=fight.phase, changes=fight.full)
    return FightWorld(FightBatch(engine, parts, decisions=fight.decisions), resumable=False)


def build_parts(config: Config, spec: FightSpec, n: int, missing: Collection[str] = ()) -> FightParts:
    """All that is around the engine of `n` fights; `missing` are fields of FIGHT that the engine does not tell."""
    return FightParts(
        encoder=build_encoder(config, spec, n),
        reward=build_reward(config, spec, n, missing),
        actions=build_actions(config),
        ending=build_ending(config, config.fight.step_limit),
        starts=build_starts(config, spec, n),
    )
