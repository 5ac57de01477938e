"""Plays fights on unseen seeds and counts how they went."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from soulsai.config.schema import DEFAULT_BOSS
from soulsai.evaluation.evaluation import FALL, Evaluation, EvaluationSettings, evaluation_seeds
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.fighter import Fighter, Flags, Int64s
from soulsai.evaluation.tally import Tally
from soulsgym.actions import NOTHING, controls_of
from soulsgym.engine import Engine, standard_starts
from soulsgym.errors import GameError, MisuseError
from soulsgym.rehearsal.engine import RehearsalOptions
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import STANDARD, FightSpec, load_fight
from soulsgym.spec.population import evaluation_specs
from soulsgym.state import NUM_ACTIONS, Fights, Outcome, copied

if TYPE_CHECKING:
    from soulsgym.target import TargetOptions

STEP_LIMIT = 3000
"""Steps of 0.1 s after which a fight counts as lost."""
BATCH = 1024
DIGITS = 5
RUNNING, DIED, FELL, BROKEN = Outcome.RUNNING, Outcome.DIED, Outcome.FELL, Outcome.BROKEN
BROKEN_AT_MOST = 3
"""Times in a row that the game may break off a fight before we give up."""

Progress = Callable[[int, int], None]
"""Is told how many fights are over, and how many there are."""


def evaluate(
    fighter: Fighter,
    fights: int,
    *,
    seed: int = 0,
    boss: str = DEFAULT_BOSS,
    variant: str = STANDARD,
    phase: int = 1,
    full: bool = True,
    randomize: float = 0.0,
    random_pose: bool = False,
    step_limit: int = STEP_LIMIT,
    no_hit: bool = False,
    batch: int = BATCH,
    progress: Progress | None = None,
    game: TargetOptions | None = None,
    recorder: FightRecorder | None = None,
) -> Evaluation:
    """Play `fights` fights, up to `batch` side by side, each step on its own so that every blow is counted.

    With `variant="drawn:20"` they are played on each of 20 drawn files that training never uses. With `game` they are
    fought in the running game, one after the other; those that it breaks off are fought again. A `recorder` keeps the
    records of the first ones.
    """
    _refuse_impossible(fights, step_limit, batch)
    specs = evaluation_specs(boss, variant)
    settings = EvaluationSettings(
        boss, variant, phase, full, float(randomize), random_pose, step_limit, no_hit, seed, fights * len(specs),
        "rehearsal" if isinstance(game, RehearsalOptions) else "game" if game else "sim",
    )  # fmt: skip
    tally = Tally(specs[0], knows_dodges=game is None)
    # As many in every round, or nearly: a round takes as long as its longest fight.
    n = 1 if game else _share(fights, batch)  # of a file
    files = _share(len(specs), max(1, batch // fights))
    endings = []
    for low in range(0, len(specs), files):
        group = specs[low : low + files]
        engine = (
            _game_engine(settings, game)
            if game
            else SimEngine(group, len(group) * n, phase=phase, changes=full, randomize=randomize)
        )
        rounds = range(low * fights, (low + len(group)) * fights, len(group) * n)
        try:
            for first in rounds:
                count = min(len(engine.fights), rounds.stop - first)
                endings.append(_play_round(engine, fighter, settings, tally, first, count, progress, recorder))
        finally:
            engine.close()
    return _evaluation(settings, specs[0], tally, np.concatenate(endings))


def _share(number: int, most: int) -> int:
    """How many to take at a time, so that no time takes more than `most` or much less than another."""
    return math.ceil(number / math.ceil(number / most))


def _game_engine(settings: EvaluationSettings, game: TargetOptions) -> Engine:
    from soulsgym.target import open_target

    if settings.variant != STANDARD or settings.randomize:
        raise MisuseError("the game has no variants and cannot be randomised; leave out --variant and --randomize")
    return open_target(load_fight(settings.boss), game, phase=settings.phase, changes=settings.full)


def _play_round(
    engine: Engine,
    fighter: Fighter,
    settings: EvaluationSettings,
    tally: Tally,
    first: int,
    count: int,
    progress: Progress | None,
    recorder: FightRecorder | None,
) -> Fights:
    """Play the fights `first`, `first` + 1, ... and return their last records."""
    for _ in range(BROKEN_AT_MOST + 1):
        begin_fights(engine, settings, first, count)
        tally.begin(engine.fights)
        if recorder is not None:
            recorder.begin(settings, first, count)
        for before, actions, playing in play_steps(engine, fighter, settings.step_limit, no_hit=settings.no_hit):
            tally.add(before, engine.fights, playing)
            if recorder is not None:
                recorder.add(before, actions)
            if progress:
                progress(first + count - int((engine.fights["outcome"] == RUNNING).sum()), settings.fights)
        tally.end()
        if not (engine.fights["outcome"] == BROKEN).any():
            break
    else:
        raise GameError(f"the game broke off a fight {BROKEN_AT_MOST + 1} times in a row; run souls doctor")
    if recorder is not None:
        recorder.end(engine.fights)
    if progress:
        progress(first + count, settings.fights)
    return copied(engine.fights)[:count]


def _refuse_impossible(fights: int, step_limit: int, batch: int) -> None:
    for name, value in (("number of fights", fights), ("step limit", step_limit), ("batch", batch)):
        if value < 1:
            raise MisuseError(f"{name} {value} is not possible; give 1 or more")


def begin_fights(engine: Engine, settings: EvaluationSettings, first: int, count: int) -> None:
    """Begin the fights `first`, `first` + 1, ... of an evaluation; those beyond `count` are over at once."""
    n = len(engine.fights)
    starts = standard_starts(n)
    starts["random_pose"] = settings.random_pose
    engine.reset(np.ones(n, np.bool_), starts, evaluation_seeds(settings.seed, first, n))
    engine.fights["outcome"][count:] = DIED


def play_steps(
    engine: Engine, fighter: Fighter, step_limit: int, *, no_hit: bool = False
) -> Iterator[tuple[Fights, Int64s, Flags]]:
    """Play until all fights are over; for every step the records before it, the actions, and who was playing."""
    fights = engine.fights
    fighter.begin(fights, np.ones(len(fights), np.bool_))
    for _ in range(step_limit):
        playing = fights["outcome"] == RUNNING
        if not playing.any():
            return
        actions = _check_actions(fighter.act(fights), playing)
        before = copied(fights)
        engine.step(controls_of(actions))
        if no_hit:
            _end_at_hit(fights, playing)
        yield before, actions, playing


def _check_actions(actions: Int64s, playing: Flags) -> Int64s:
    if np.shape(actions) != np.shape(playing):
        raise MisuseError(f"fighter chose {np.shape(actions)} actions; give one for each of {len(playing)} fights")
    chosen = np.where(playing, actions, NOTHING)
    bad = (chosen < 0) | (chosen >= NUM_ACTIONS)
    if bad.any():
        raise MisuseError(f"fighter chose action {chosen[bad][0]}; give 0 to {NUM_ACTIONS - 1}")
    return chosen


def _end_at_hit(fights: Fights, playing: Flags) -> None:
    """The first hit loses, even if the boss died in the same step. The engine leaves alone what is over."""
    hit = playing & (fights["hit_by"] >= 0) & (fights["damage_taken"] > 0.0)
    fights["killed_by"][hit] = fights["hit_by"][hit]
    fights["outcome"][hit] = DIED


def _evaluation(settings: EvaluationSettings, spec: FightSpec, tally: Tally, endings: Fights) -> Evaluation:
    return Evaluation(
        settings=settings,
        last_phase=len(spec.boss.phases) if settings.full else settings.phase,
        outcome=endings["outcome"].astype(np.int32),
        killed_by=tuple(
            tally.name_of(move) if outcome == DIED else FALL if outcome == FELL else ""
            for move, outcome in zip(endings["killed_by"], endings["outcome"], strict=True)
        ),
        time_s=_round(endings["time_s"]),
        player_hp_share=_round(endings["player_hp"][:, 0] / endings["player_max_hp"]),
        boss_hp_share=_round(endings["boss_hp"][:, 0] / endings["boss_max_hp"]),
        damage_taken=_round(endings["taken_total"]),
        steps=endings["step"].astype(np.int32),
        phase=endings["phase"].astype(np.int32),
        attacks=tally.attacks(),
        deaths=tally.deaths(),
        hits=tally.hits(),
        places=tally.places,
        hit_places=tally.hit_places,
        damage_over_time=tally.pace.damage_over_time(),
    )


def _round(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Without the noise of single precision, which would only make files long."""
    return np.asarray(np.round(values, DIGITS), np.float64)
