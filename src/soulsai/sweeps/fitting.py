"""Does a space make sense for a config? Refuses what would train for nothing."""

from __future__ import annotations

from collections.abc import Iterator

from soulsai.config.checks import unknown_part
from soulsai.config.refusal import refusal
from soulsai.config.schema import Config
from soulsai.sweeps.space import RETURN, WIN_RATE, Space
from soulsai.sweeps.study import WEIGHTS

FIGHT_ONLY = ("fight", "encoder", "reward", "actions", "starts")


def metric_of(space: Space, config: Config) -> str:
    """What is to be large."""
    return space.plan.metric or (WIN_RATE if config.world == "fight" else RETURN)


def check_fit(space: Space, config: Config, settings: list[str], source: str) -> None:
    """ConfigError for the first key, or setting of the command line, that cannot be meant."""
    for problem in _problems(space, config, settings):
        raise refusal(source, problem)


def _problems(space: Space, config: Config, settings: list[str]) -> Iterator[str]:
    keys = space.keys()
    for key in (setting.partition("=")[0].strip() for setting in settings):
        if key in keys:
            yield f"{key} is tried by this space and set by --set; leave one out"
    for key in keys:
        section = key.partition(".")[0]
        if section == "fleet" or section in _unused(config, keys):
            yield f"{key} changes nothing with {_why(section, config)}; leave it out"
    yield from _term_problems(config, keys)
    if "starts.random_pose" in keys and not config.fight.full:
        yield "starts.random_pose is a part of the task where a single phase is trained; leave it out"
    yield from _run_problems(config)
    metric = metric_of(space, config)
    if (metric == WIN_RATE) != (config.world == "fight"):
        wanted = WIN_RATE if config.world == "fight" else RETURN
        yield f'sweep.metric = "{metric}" is never measured with world = "{config.world}"; write "{wanted}"'


def _term_problems(config: Config, keys: tuple[str, ...]) -> Iterator[str]:
    terms = [key.removeprefix(WEIGHTS) for key in keys if key.startswith(WEIGHTS)]
    if not terms:
        return
    from soulsgym.parts.files import parts_in

    with parts_in(config.fight.parts):
        problems = {term: unknown_part("reward term", term) for term in terms}
    for term, way_out in problems.items():
        if way_out:
            yield f"{WEIGHTS}{term} is the weight of no term of the reward; {way_out}"


def _run_problems(config: Config) -> Iterator[str]:
    run = config.run
    if config.world == "fight" and config.fight.engine == "game":
        yield "fight.engine = game: one game plays one fight at a time, too slow for a sweep; sweep in the simulator"
    if run.evaluate_every_steps == 0:
        yield "run.evaluate_every_steps = 0 leaves nothing to compare trials by; set it under [sweep.fixed]"
    if run.evaluate_every_steps > run.steps:
        yield (
            f"run.evaluate_every_steps = {run.evaluate_every_steps} is more than run.steps = {run.steps}, so that no "
            "trial could be pruned; make it smaller under [sweep.fixed]"
        )


def _unused(config: Config, keys: tuple[str, ...]) -> set[str]:
    unused = set(FIGHT_ONLY) if config.world == "gym" else {"gym"}
    if "algorithm" not in keys:
        unused |= {"q", "replay"} if config.algorithm == "ppo" else {"ppo"}
    return unused


def _why(section: str, config: Config) -> str:
    if section == "fleet":
        return "trials, which play for themselves"
    return f'world = "{config.world}"' if section in (*FIGHT_ONLY, "gym") else f'algorithm = "{config.algorithm}"'
