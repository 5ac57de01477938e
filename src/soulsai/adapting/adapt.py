"""Adapts an agent to a target: rounds of playing there, calibrating the simulator, and training in it."""

from __future__ import annotations

import json
import logging
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from soulsai.adapting.fine_tune import IN_SIMULATOR, IN_TARGET, LEARNER, simulator_loop, target_loop, train_with
from soulsai.adapting.play import play, steps_of, wins
from soulsai.config import config_to_toml, with_settings
from soulsai.config.schema import Config
from soulsai.errors import RunError
from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.fighter import Fighter, ScriptedFighter
from soulsai.evaluation.statistics import wilson
from soulsai.evaluation.thoughts import about_game, write_fight_file
from soulsai.learning.loading import load_trained
from soulsai.learning.training import Progress
from soulsai.runs.files import cannot_write, write_atomically
from soulsai.runs.lock import hold_lock
from soulsai.runs.run import Run
from soulsai.runtime.fleet import Fleet
from soulsgym.calibration.advice import Advice, advice
from soulsgym.calibration.calibrate import Calibration, calibrate
from soulsgym.calibration.estimate import count_kinds
from soulsgym.engine import Engine
from soulsgym.errors import GameError, MisuseError, RecordingError
from soulsgym.recordings.exact import data_digest
from soulsgym.recordings.recording import Recording, read_recording
from soulsgym.rehearsal.engine import RehearsalEngine
from soulsgym.spec.fight import FightFiles, load_fight, read_files
from soulsgym.spec.overlay import overlay
from soulsgym.target import TargetOptions, open_target

STEPS_PER_MINUTE = 600
"""Of play: a step is 0.1 s."""
SHARES = (0.2, 0.2, 0.25, 0.35)
"""Of the minutes, for each round; where they are few, the last rounds share them."""
SHORTEST = 2.5
"""Minutes of a round: in less, too few attacks are seen."""
PROBED = (0.75, 0.6, 0.4, 0.2)
"""Of a round's minutes, those of the prober, who shares them out among the phases."""
TUNABLE = ("run.", "q.", "replay.")
"""How settings begin that a user may give for learning in the target too."""
LEAST_NEED = 0.2
"""Advice that asks for less is not worth sending the prober."""
SETTLED = 2
"""Rounds in a row that bring nothing end it."""
STATE, LOCK, RECORDINGS = "adapt.json", "lock", "recordings"
GAME = "game"
"""What stands for the running game where a rehearsal has the digest of its file."""

log = logging.getLogger(__name__)


@dataclass
class Round:
    """What a round did."""

    number: int
    minutes: float = 0.0
    won: int = 0
    fought: int = 0
    corrected: int = 0
    """Numbers of the file that the recordings do not confirm."""
    moved: int = 0
    """Those of them that the round before had at another value."""
    win_rate: float | None = None
    """Of the agent on the calibrated boss, after training."""


@dataclass
class State:
    """How far an adaptation has come; kept in its folder."""

    run: str
    boss: str
    minutes: float
    target: str = ""
    boss_digest: str = ""
    rounds: list[Round] = field(default_factory=list)
    fine_tuned: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    @property
    def played(self) -> float:
        """Minutes of play."""
        return sum(one.minutes for one in self.rounds)


@dataclass(frozen=True)
class WinRate:
    """Fights in the target, and how many of them were won."""

    wins: int
    fights: int

    @property
    def share(self) -> float:
        """Of the fights, those that were won."""
        return self.wins / self.fights

    @property
    def interval(self) -> str:
        """That of 95 %, in words."""
        low, high = wilson(self.wins, self.fights)
        return f"{low:.1%} to {high:.1%}"

    def __str__(self) -> str:
        return f"{self.share:.1%} ({self.interval})"

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {"win_rate": self.share, "interval": list(wilson(self.wins, self.fights)), "fights": self.fights}


@dataclass(frozen=True)
class Result:
    """How it ended: win rates in the target of the agent as it came and as it is now."""

    folder: Path
    run: Path
    minutes: float
    before: WinRate | None
    after: WinRate | None
    fine_tuned: dict[str, Any]
    """Minutes of learning in the target itself, and how often its policy and the calibrated one won after it."""


@dataclass
class Adaptation:
    """One adaptation in a folder of its own; the agent it begins with is only read."""

    agent: Path
    target: TargetOptions
    folder: Path
    minutes: float = 30.0
    train_steps: int = 10_000_000
    fights: int = 200
    """Of the target, for each of the two win rates at the end."""
    settings: Sequence[str] = ()
    say: Callable[[str], None] = log.info
    show: Callable[[Progress], None] = lambda progress: None
    stop: Callable[[], bool] = lambda: False
    fine_tune: float = 0.0
    """Share of the minutes for learning in the target itself, after the rounds."""

    def run(self) -> Result | None:
        """Adapt, or go on where it was stopped; None if `stop` said so before its end."""
        config = self._config()
        self._refuse_other_content()
        target = self._look_at_target(config.fight.boss)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        with hold_lock(self.folder / LOCK):
            state = self._load(config, target)
            return self._go_on(state, config)

    def _go_on(self, state: State, config: Config) -> Result | None:
        files, minutes = read_files(state.boss), state.minutes * (1.0 - self.fine_tune)
        shares = _shares(minutes)
        for number in range(len(state.rounds) + 1, len(shares) + 1):
            if state.played >= minutes or self._is_settled(state):
                break
            steps = round(shares[number - 1] * minutes * STEPS_PER_MINUTE)
            done = self._round(number, steps, state, files, config)
            if done is None:
                return None
            state.rounds.append(done)
            self._save(state)
        if self.fine_tune and not self._fine_tune(state, config):
            return None
        return self._judge(state)

    def _config(self) -> Config:
        config = load_trained(str(self.agent)).config
        if config is None or config.world != "fight" or config.fight.engine != "sim":
            raise MisuseError(f"{self.agent} was not trained on fights in the simulator; give a run that was")
        if config.fight.bosses:
            raise MisuseError(f"{self.agent} was trained on several bosses; give a run that was trained on one")
        with_settings(config, self.settings)  # refuses what is wrong before anything is played for it
        return config

    def _refuse_other_content(self) -> None:
        try:
            there = {file.name for file in self.folder.iterdir()} if self.folder.exists() else set()
        except OSError as error:
            raise RunError(f"{self.folder}: cannot be read ({error.strerror}); give another folder") from error
        if there - {LOCK} and STATE not in there:
            raise MisuseError(f"{self.folder} is there already and holds no adaptation; give another folder")

    def _look_at_target(self, boss: str) -> str:
        """What tells the target from another one; an error if it cannot be played."""
        engine = open_target(load_fight(boss), self.target, changes=True)
        engine.close()
        return engine.digest if isinstance(engine, RehearsalEngine) else GAME

    def _load(self, config: Config, target: str) -> State:
        file, digest = self.folder / STATE, data_digest(load_fight(config.fight.boss))
        if not file.exists():
            state = State(str(self.agent.absolute()), config.fight.boss, self.minutes, target, digest)
            self._save(state)
            return state
        try:
            told = {"target": target, "boss_digest": digest} | json.loads(file.read_text(encoding="utf-8"))
            rounds = [Round(**one) for one in told.pop("rounds")]
            state = State(**told, rounds=rounds)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise RunError(f"{file} cannot be read ({error}); give another folder") from error
        if state.run != str(self.agent.absolute()):
            raise MisuseError(f"{self.folder} adapts {state.run}, not {self.agent}; give another folder")
        if state.target != target:
            raise MisuseError(f"{self.folder} adapts to another target than this one; give that one, or another folder")
        if state.boss_digest != digest:
            raise MisuseError(
                f"{self.folder} began with other numbers of {state.boss} than there are now; "
                "go back to those, or give another folder"
            )
        if rounds and not self._run(len(rounds)).exists():
            raise RunError(
                f"{self._run(len(rounds))}, the agent of round {len(rounds)}, is gone; put it back, or begin again in "
                "another folder with --out"
            )
        state.minutes = self.minutes
        return state

    def _save(self, state: State) -> None:
        write_atomically(self.folder / STATE, json.dumps(asdict(state), indent=2))

    def _is_settled(self, state: State) -> bool:
        last = state.rounds[-SETTLED:]
        return len(last) == SETTLED and all(one.moved == 0 for one in last)

    def _round(self, number: int, steps: int, state: State, files: FightFiles, config: Config) -> Round | None:
        """Play, calibrate, train."""
        done = Round(number)
        before = self._calibration_before(state, files) if number > 1 else None
        played, by_agent = self._play(number, steps, state, before)
        if self.stop():
            return None
        done.minutes = steps_of([*played, *by_agent]) / STEPS_PER_MINUTE
        done.won, done.fought = wins(by_agent)
        calibration = self._calibration(files, number)
        corrected = [one for one in calibration.estimates if one.moves]
        done.corrected, done.moved = len(corrected), _differences(before, calibration)
        kinds = f" ({count_kinds(corrected)})" if corrected else ""
        sure = f"({WinRate(done.won, done.fought).interval})" if done.fought else "(too few to tell)"
        self.say(
            f"round {number}: {state.played + done.minutes:.1f} minutes played; "
            f"the agent won {done.won} of {done.fought} fights {sure}; "
            f"{done.corrected} numbers corrected{kinds}"
            + (f", {done.moved} changed since round {number - 1}" if before else "")
        )
        self._write_boss(number, calibration)
        if not self._train(number, config):
            return None
        finals = [text for name, text in Run.open(self._run(number)).evaluations() if name.endswith("final")]
        done.win_rate = Evaluation.from_json(finals[-1]).win_rate if finals else None
        return done

    def _play(
        self, number: int, steps: int, state: State, known: Calibration | None
    ) -> tuple[list[Recording], list[Recording]]:
        """Send the prober where little is known, and then the agent; what was recorded of each."""
        spec = load_fight(state.boss)
        needed = advice(known) if known else []
        probing = PROBED[number - 1] if known is None or (needed and needed[0].needs > LEAST_NEED) else 0.0
        phases, probed = len(spec.boss.phases), list[Recording]()
        share = round(probing * steps / phases)
        for phase in range(1, phases + 1):
            what = f"round {number}, the prober in phase {phase}"
            prober = ScriptedFighter("prober", seed=number, boss=state.boss, wanted=_places(needed, spec.boss.moves))
            name = f"{RECORDINGS}/{number}-prober-{phase}"
            probed += self._record(name, what, prober, state, steps=share, phase=phase)
        agent = load_trained(str(self._agent_before(number))).fighter(state.boss)
        own, what = steps - phases * share, f"round {number}, the agent"
        return probed, self._record(f"{RECORDINGS}/{number}-agent", what, agent, state, steps=own)

    def _record(
        self, name: str, what: str, fighter: Fighter, state: State, *, steps: int = 0, fights: int = 0, phase: int = 0
    ) -> list[Recording]:
        """Play what is missing of so many steps or whole fights: full ones, or in one phase, where nobody really dies.

        All recordings of this name: each time that it goes on after a stop makes another one.
        """
        files = sorted(self.folder.glob(f"{name}.npz")) + sorted(self.folder.glob(f"{name}.*.npz"))
        there = [read_recording(file) for file in files]
        steps, fights = steps - steps_of(there), fights - wins(there)[1]
        if (steps <= 0 and fights <= 0) or self.stop():
            return there
        self.say(f"{what}: " + (f"{steps / STEPS_PER_MINUTE:.1f} minutes" if steps > 0 else f"{fights} fights"))
        file = self.folder / (f"{name}.{len(files) + 1}.npz" if files else f"{name}.npz")
        limit, about = {"steps": steps} if steps > 0 else {"fights": fights}, about_game(state.boss)
        try:
            engine: Engine = open_target(load_fight(state.boss), self.target, phase=phase or 1, changes=not phase)
            try:
                play(engine, fighter, keep=partial(_write_recording, file, about), stop=self.stop, **limit)
            finally:
                engine.close()
        except GameError:
            if not self.stop():  # whoever stops may close the game as well
                raise
        return [*there, read_recording(file)] if file.exists() else there

    def _calibration_before(self, state: State, files: FightFiles) -> Calibration:
        """That of the finished rounds; if it cannot be made again, their recordings are gone or were changed."""
        minutes = math.floor(10.0 * state.played / (1.0 - self.fine_tune)) / 10.0
        way_out = (
            "put the recordings of the finished rounds back, end with those rounds with "
            f"--minutes {minutes:g}, or begin again in another folder with --out"
        )
        return self._calibration(files, len(state.rounds), way_out)

    def _calibration(
        self,
        files: FightFiles,
        rounds: int,
        way_out: str = "play longer with --minutes, or begin again in another folder with --out",
    ) -> Calibration:
        """From the recordings of so many rounds, and whatever else the user put beside them."""
        recordings = sorted((self.folder / RECORDINGS).glob("*.npz"))
        read = [read_recording(file) for file in recordings if _round_of(file) <= rounds]
        if not read:
            raise RunError(f"{self.folder / RECORDINGS} has no recordings; {way_out}")
        try:
            return calibrate(read, files)
        except RecordingError as error:
            raise RunError(f"{error}; {way_out}") from error

    def _write_boss(self, number: int, calibration: Calibration) -> None:
        """The calibrated boss as a file of his own, so that variants of him can be drawn."""
        content = overlay(calibration.files.content, calibration.overlay) | {"known": calibration.known}
        write_atomically(self._boss(number), tomli_w.dumps(content))
        write_atomically(self.folder / "calibrated.toml", calibration.text())

    def _train(self, number: int, config: Config) -> bool:
        """Go on training on the calibrated boss; whether that came to its end."""
        settings = [
            *self._on_boss(number),
            f"run.steps={self.train_steps}",
            f"run.evaluate_every_steps={max(1, self.train_steps // 5)}",
            "run.final_fights=500",
            f"run.start_from={json.dumps(str(self._agent_before(number).absolute()))}",
            *self.settings,
        ]
        fleet = self._fleet(self._run(number), config, settings)
        return fleet is None or fleet.train().finished

    def _fine_tune(self, state: State, config: Config) -> bool:
        """Learn values on the calibrated boss, and go on with them in the target; whether that came to its end."""
        number, minutes = len(state.rounds), state.minutes - state.played
        agent, values, tuned = self._agent_before(number + 1), self._run("values"), self._run("fine-tuned")
        given, own = [*self._on_boss(number), *LEARNER], [each for each in self.settings if each.startswith(TUNABLE)]
        fleet = self._fleet(values, config, [*given, *IN_SIMULATOR, *own])
        if fleet is not None:
            policy = load_trained(str(agent)).policy
            assert policy is not None
            self.say("fine-tuning: values are learned on the calibrated boss")
            if not train_with(fleet, partial(simulator_loop, fleet.config, policy)):
                return False
        start = [f"run.start_from={json.dumps(str(values.absolute()))}", f"run.steps={minutes * STEPS_PER_MINUTE:.0f}"]
        fleet = self._fleet(tuned, config, [*given, *IN_TARGET, *own, *start])
        if fleet is not None:
            self.say(f"fine-tuning: {minutes:.1f} minutes of learning in the target")
            if not train_with(fleet, partial(target_loop, fleet.config, state.boss, self.target)):
                return False
        state.fine_tuned["minutes"] = Run.open(tuned).status().step / STEPS_PER_MINUTE
        self._save(state)
        return True

    def _on_boss(self, number: int) -> list[str]:
        boss = json.dumps(str(self._boss(number).absolute()))
        return [f"fight.boss={boss}", 'fight.variants=["standard", "drawn:16"]']

    def _fleet(self, folder: Path, config: Config, settings: Sequence[str]) -> Fleet | None:
        """The run of a folder, begun or to go on; None if it is finished."""
        given: dict[str, Any] = {"say": self.say, "show": self.show, "stop": self.stop, "check": False}
        if (folder / "config.toml").exists():
            is_finished = Run.open(folder).status().state == "finished"
            return None if is_finished else Fleet.resumed(folder, **given)
        shutil.rmtree(folder, ignore_errors=True)  # ended while it was made: nothing has been learned in it
        start = self.folder / "start.toml"
        write_atomically(start, config_to_toml(config))
        return Fleet.begin(str(start), folder, settings, **given)

    def _boss(self, number: int) -> Path:
        return self.folder / f"boss-{number}.toml"

    def _run(self, name: int | str) -> Path:
        return self.folder / "runs" / str(name)

    def _agent_before(self, number: int) -> Path:
        """The folder of the agent as it is before a round."""
        return self._run(number - 1) if number > 1 else self.agent

    def _judge(self, state: State) -> Result | None:
        """Win rates in the target of the agent as it came and as it is now, on fights that nothing else used."""
        kept = self._agent_before(len(state.rounds) + 1)
        if state.fine_tuned:
            kept = self._choose(kept, self._run("fine-tuned"), state)
        before = self._win_rate("before", self.agent, state, self.fights)
        after = self._win_rate(f"after-{kept.name}", kept, state, self.fights)
        if self.stop():
            return None
        state.before, state.after = (rate.to_json() if rate else {} for rate in (before, after))
        self._save(state)
        minutes = state.played + state.fine_tuned.get("minutes", 0.0)
        return Result(self.folder, kept, minutes, before, after, state.fine_tuned)

    def _choose(self, calibrated: Path, tuned: Path, state: State) -> Path:
        """The one that wins more fights; its win rate is then taken on others, which did not choose it."""
        rates = [self._win_rate(f"choose-{run.name}", run, state, self.fights // 2) for run in (calibrated, tuned)]
        if self.stop() or rates[0] is None or rates[1] is None:
            return calibrated
        kept = tuned if rates[1].share > rates[0].share else calibrated
        told = dict(zip(("calibrated", "fine_tuned"), (rate.to_json() for rate in rates if rate), strict=True))
        state.fine_tuned |= told | {"kept": str(kept)}
        self.say(f"wins of {rates[0].fights} fights: calibrated {rates[0]}, fine-tuned {rates[1]}; kept: {kept}")
        return kept

    def _win_rate(self, name: str, agent: Path, state: State, fights: int) -> WinRate | None:
        fighter = load_trained(str(agent)).fighter(state.boss)
        won, fought = wins(self._record(f"held-out/{name}", f"held-out fights, {name}", fighter, state, fights=fights))
        return WinRate(won, fought) if fought else None


def _write_recording(file: Path, about: Mapping[str, Any], recording: Recording) -> None:
    """All of it or nothing."""
    try:
        file.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(file.parent, error) from error
    write_fight_file(file, recording, about, durably=True)


def _round_of(file: Path) -> int:
    number = file.name.partition("-")[0]
    return int(number) if number.isdecimal() else 0


def _shares(minutes: float) -> list[float]:
    """Shares of the minutes, one for each round."""
    rounds = min(max(1, int(minutes / SHORTEST)), len(SHARES))
    own = SHARES[-rounds:]
    return [share / sum(own) for share in own]


def _places(needed: Sequence[Advice], moves: Sequence[Any]) -> dict[tuple[int, str], tuple[float, float]]:
    animations = {move.name: move.animation for move in moves}
    return {(one.phase, animations[one.move]): (one.low_m, one.high_m) for one in needed if one.move in animations}


def _differences(before: Calibration | None, after: Calibration) -> int:
    """How many corrected numbers the calibration before had outside of their intervals now."""
    if before is None:
        return sum(one.moves for one in after.estimates)
    known = {one.key: one.value if one.moves else one.before for one in before.estimates}
    changed = 0
    for one in after.estimates:
        was = known.get(one.key)
        if not isinstance(one.value, float):
            continue
        changed += one.moves if was is None else not one.low <= was <= one.high
    return changed
