"""A shared agent: the folder of a run that holds the policy, its config and what was measured, and nothing else.

`agent.json` tells the win rates with the seeds they were measured on, and the checksums of everything that decides
them: weights, config, boss files. Nothing in such a folder is unpickled, and no Python file belongs to it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec.structs import replace

from soulsai.acting.policy import NetworkPolicy
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.checkpoints.store import CheckpointStore
from soulsai.config import config_from_toml, config_to_toml
from soulsai.config.refusal import refusal
from soulsai.config.schema import Config
from soulsai.errors import RunError
from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.statistics import wilson
from soulsai.learning.candidates import refuse_gym
from soulsai.learning.loading import load_networks
from soulsai.learning.scoring import evaluate_policy
from soulsai.learning.session import update_report
from soulsai.learning.showing import keep_fight
from soulsai.learning.wiring import code_digest
from soulsai.runs.fight_files import (
    file_name,
    files_of,
    remove_parts,
    unpack_names,
    with_demos,
    with_own_copies,
    with_short_names,
)
from soulsai.runs.files import cannot_write, write_atomically, write_files
from soulsai.runs.run import CONFIG, VERSIONS, Run
from soulsai.runs.status import Status
from soulsai.runs.versions import PACKAGES
from soulsgym.packages import VERSION
from soulsgym.recordings.exact import data_digest
from soulsgym.spec import is_path, load_fight
from soulsgym.spec import variants as variants_of

AGENT = "agent.json"
FORMAT: Final = 1
CHECKED = (CONFIG, "checkpoints/*/*", "data/*/*")
"""What decides how it fights: these files have a checksum in agent.json."""
MOST_BYTES = 200 << 20
FIGHTS = 1000
PRIVATE = ("--run", "--notify", "--wandb", "--parts")
"""Options of a command line whose values are nobody else's business."""
KEPT_VERSIONS = ("preset", "seed", "started", "python", "soulsgym", *PACKAGES)
"""What of versions.json is told: nothing of the machine."""
Text = Annotated[str, msgspec.Meta(max_length=4000)]
Progress = Callable[[int, int], None]


class Measurement(msgspec.Struct, frozen=True):
    """Wins of some fights, and all that is needed to fight them again."""

    variant: Text
    randomize: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
    seed: Annotated[int, msgspec.Meta(ge=0)]
    fights: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    wins: Annotated[int, msgspec.Meta(ge=0)] = 0

    def __post_init__(self) -> None:
        """Refuse more wins than fights."""
        if self.wins > self.fights:
            raise ValueError(f"{self.wins} wins of {self.fights} fights")

    @property
    def rate(self) -> float:
        """Share of wins."""
        return self.wins / self.fights

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the win rate (Wilson's)."""
        return wilson(self.wins, self.fights)

    @property
    def name(self) -> str:
        """Which fights, in a word or two."""
        return self.variant + (f", randomize {self.randomize:g}" if self.randomize else "")


class AgentNotes(msgspec.Struct, frozen=True):
    """What `agent.json` holds."""

    format: Literal[1]
    boss: Text
    command: Text
    soulsgym: Text
    code: Text
    data: dict[str, Text]
    files: dict[str, Text]
    measured: Annotated[tuple[Measurement, ...], msgspec.Meta(min_length=1, max_length=50)]


def read_notes(run: Run) -> AgentNotes:
    """What is claimed of a shared agent; RunError if it is none."""
    file = run.folder / AGENT
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(MOST_BYTES), type=AgentNotes)
    except FileNotFoundError as error:
        raise RunError(
            f"{run.folder}: is not a shared agent (it has no {AGENT}); give a folder from `souls pull`, or zoo:NAME"
        ) from error
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise RunError(f"{file}: is damaged ({error}): pull the agent again") from error


def shared_config(run: Run) -> Config:
    """The config of a shared agent, which reads files from its folder alone; ConfigError if it names any others."""
    source = str(run.folder / CONFIG)
    config = config_from_toml(run.config_toml, source)
    refuse_gym(run.name, config)
    if config.fight.parts:  # of this machine's disk, perhaps: they would be run
        raise refusal(source, f"fight.parts names {config.fight.parts[0]!r}: no Python file belongs to a shared agent")
    fight, places = config.fight, {path.relative_to(run.data).as_posix(): "" for path in run.data.glob("*/*")}
    unpack_names(fight.boss, fight.variants, places, source)  # refuses files that lie elsewhere
    return with_own_copies(run, config)


def pack_agent(
    run: Run,
    folder: Path,
    *,
    command: str = "",
    fights: int = FIGHTS,
    seed: int = 0,
    only_policy: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Measure the policy that a run has kept and write it as a shared agent into a new folder.

    Beside the policy it holds the evaluation, a report and a fight, unless `only_policy`.
    """
    config, networks = load_networks(run)
    refuse_gym(run.name, config)
    config = remove_parts(config, str(run.folder / CONFIG))
    weights = {f"{name}.{key}": value for name, net in networks.items() for key, value in net.state_dict().items()}
    agent = _create(run, config, folder)
    CheckpointStore(agent.checkpoints).save(run.status().step, {"best": weights}, {})
    policy, recorder = algorithm_of(config).policy(networks), FightRecorder(1)
    found = [
        measure(config, policy, test, recorder=None if number else recorder, progress=progress)
        for number, test in enumerate(tests_of(config, fights, seed))
    ]
    measured = tuple(measurement for measurement, _ in found)
    low, high = measured[0].interval
    agent.write_status(Status("finished", run.status().step, config.run.steps, measured[0].rate, low, high))
    if not only_policy:
        plain = found[0][1]
        agent.add_evaluation("shared", strip_paths(plain).to_json())
        keep_fight(agent.recordings / "fight.npz", config, policy, recorder, 0)
        update_report(agent)
    notes = AgentNotes(
        FORMAT,
        file_name(config.fight.boss),
        command or _command(run),
        VERSION,
        code_digest(),
        {each.variant: fight_digest(config, each.variant) for each in measured},
        dict(checksums(agent)),
        measured,
    )
    write_atomically(agent.folder / AGENT, msgspec.json.format(msgspec.json.encode(notes), indent=1))
    return agent


def tests_of(config: Config, fights: int, seed: int) -> list[Measurement]:
    """The fights that a policy is measured in: plain, the boss's other variants, and randomised."""
    main = file_name(config.fight.main_variant)
    others = [each for each in variants_of(config.fight.boss) if each != main]
    tests = [(main, 0.0), *((each, 0.0) for each in others), (main, 1.0)]
    return [Measurement(variant, randomize, seed, fights) for variant, randomize in tests]


def measure(
    config: Config,
    policy: NetworkPolicy,
    test: Measurement,
    *,
    recorder: FightRecorder | None = None,
    progress: Progress | None = None,
) -> tuple[Measurement, Evaluation]:
    """Fight the fights of a measurement; the same with the wins that came of it."""
    found = evaluate_policy(
        config, policy, test.fights, seed=test.seed, variant=variant_of(config, test.variant),
        randomize=test.randomize, recorder=recorder, progress=progress,
    )  # fmt: skip
    return replace(test, wins=found.wins), found


def variant_of(config: Config, name: str) -> str:
    """The variant that a measurement names, of files of the config alone."""
    own = {file_name(each): each for each in config.fight.variants}
    if is_path(name) and name not in own:
        raise RunError(f"{AGENT} names the variant {name!r}, which the agent's config does not: pull it again")
    return own.get(name, name)


def fight_digest(config: Config, variant: str) -> str:
    """Changes as soon as one number of the boss, the character or the arena does."""
    return data_digest(load_fight(config.fight.boss, variant_of(config, variant)))


def checksums(run: Run) -> Iterator[tuple[str, str]]:
    """Place and SHA-256 of every file that decides how an agent fights."""
    for file in sorted(path for pattern in CHECKED for path in run.folder.glob(pattern) if path.is_file()):
        if file.stat().st_size > MOST_BYTES:
            raise RunError(f"{file}: is too large for an agent (more than {MOST_BYTES >> 20} MB): pull it again")
        yield file.relative_to(run.folder).as_posix(), hashlib.sha256(file.read_bytes()).hexdigest()


def command_of(words: Sequence[str]) -> str:
    """A command line without what is of one machine alone."""
    kept, rest = ["souls"], iter(words[1:])
    for word in rest:
        name, _, value = word.partition("=")
        if name in PRIVATE:
            value or next(rest, "")
        else:
            kept.append(re.sub(r"[^\s=\"'\[,]*[/\\]", "", word))
    return shlex.join(kept)


def strip_paths(found: Evaluation) -> Evaluation:
    """The evaluation without paths of this machine."""
    settings = dataclasses.replace(
        found.settings, boss=file_name(found.settings.boss), variant=file_name(found.settings.variant)
    )
    return dataclasses.replace(found, settings=settings)


def _command(run: Run) -> str:
    """What trained the run, also if it is a shared agent itself."""
    return read_notes(run).command if (run.folder / AGENT).exists() else command_of(run.versions.get("command", ()))


def _create(run: Run, config: Config, folder: Path) -> Run:
    if folder.exists() and any(folder.iterdir()):
        raise RunError(f"{folder} exists; choose another folder")
    named = with_short_names(config)
    named = replace(with_demos(named, ()), run=replace(named.run, start_from=""))
    versions = {key: value for key, value in run.versions.items() if key in KEPT_VERSIONS}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    agent = Run(folder)
    write_files(files_of(config), agent.data)
    write_atomically(folder / VERSIONS, json.dumps(versions, indent=1))
    write_atomically(folder / CONFIG, config_to_toml(named))
    return agent
