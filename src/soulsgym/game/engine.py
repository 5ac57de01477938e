"""GameEngine: fights in running games, behind the same protocol as those in the simulator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import CONTROL, Controls
from soulsgym.engine import START, Snapshot, check_one_for_each, refuse_out_of_range, restart
from soulsgym.errors import MisuseError, StartError
from soulsgym.game.attach import Game, Launcher, attach
from soulsgym.game.fight import INPUT_SETTLE_S, GameFight
from soulsgym.game.pacing import STEPPINGS, Pacer, choose_pacer
from soulsgym.game.reset import HARD_RESET_S, SETUP_SPEED, Setup, Start, wanted_pose
from soulsgym.game.titles import fight_title
from soulsgym.game.tracking import Tracker
from soulsgym.game.waits import REAL_TIME, TimeSource
from soulsgym.spec.game import GameSetup, Pose
from soulsgym.state import FIGHT, Fights, Outcome, copied

KIND = "game-1"
"""Kind of a snapshot."""
HIDDEN = np.dtype([("phase", "i4")])
MISSING_FIELDS = ("dodged", "invulnerable")
"""What a running game does not tell."""
OF_MOVES = ("boss_move", "hit_by", "killed_by")
"""What it does not tell of a boss whose moves nobody has written down."""


@dataclass(frozen=True)
class GameOptions:
    """How to play on this machine. None of it comes from anywhere else: `launch` is a command that is run."""

    speed: float = 3.0  # of the game, times its own; infinity: as fast as it goes
    stepping: str = "auto"  # ticks: exact steps by a frozen clock; speed: run and pause; auto: what the game allows
    pid: int | None = None  # which of several games
    launch: str | Sequence[str] | None = None  # command that starts the game again after a crash
    display: str = ""  # X display of the game, where its environment does not tell

    def __post_init__(self) -> None:
        if not self.speed > 0.0:
            raise MisuseError(f"game_speed {self.speed} is not possible; give a number above 0")
        if self.stepping not in STEPPINGS:
            raise MisuseError(f"stepping {self.stepping!r} is not known; give one of {', '.join(STEPPINGS)}")


class GameEngine:
    """One fight in each of the running games, which are closed with the engine.

    With `changes` a fight is real: all phases, real health, real deaths. Otherwise it is for training: health is
    counted here and restored in the game after every step, and the boss stays in `phase`.
    """

    def __init__(
        self,
        plan: GameSetup,
        games: Sequence[Game],
        *,
        phase: int = 1,
        changes: bool = False,
        game_speed: float = 1.0,
        stepping: str = "auto",
        relaunch: Callable[[Game], Game] | None = None,
        input_settle_s: float = INPUT_SETTLE_S,
        hard_reset_s: float = HARD_RESET_S,
        setup_speed: float = SETUP_SPEED,
        source: TimeSource = REAL_TIME,
    ) -> None:
        if not games:
            raise MisuseError("no game is given; attach to one first")
        if not 1 <= phase <= plan.phases:
            raise MisuseError(f"phase {phase} is not there; {plan.name} has phases 1 to {plan.phases}")
        if not game_speed > 0.0:
            raise MisuseError(f"game_speed {game_speed} is not possible; give a number above 0, or inf")
        if not 0.0 < setup_speed < math.inf:
            raise MisuseError(f"setup_speed {setup_speed} is not possible; give a number above 0")
        if stepping not in STEPPINGS:
            raise MisuseError(f"stepping {stepping!r} is not known; give {', '.join(STEPPINGS)}")
        n = len(games)
        self.plan = plan
        self.fights: Fights = np.zeros(n, FIGHT)
        self.fights["outcome"] = Outcome.DIED
        title = type(fight_title(games[0].title))
        self.statuses: npt.NDArray[Any] = np.zeros(n, [(name, "f4", (1,)) for name in title.statuses])
        for name, unaffected in title.statuses.items():
            self.statuses[name] = unaffected
        self.missing_fields = missing_fields(plan)
        self.notes: list[dict[str, Any]] = [{} for _ in games]
        self._phase, self._game_speed, self._stepping, self._source = phase, game_speed, stepping, source
        self._generators = [np.random.default_rng() for _ in games]
        self._fights = []
        for i, game in enumerate(games):
            setup = Setup(
                plan, game, not changes, source, self._pacer_of,
                relaunch=relaunch, hard_reset_s=hard_reset_s, speed=setup_speed,
            )  # fmt: skip
            tracker = Tracker(plan, title, self.fights[i], self.statuses[i], training=not changes)
            self._fights.append(GameFight(setup, tracker, self.fights[i], self.notes[i], input_settle_s=input_settle_s))
        self._crew = ThreadPoolExecutor(n, "soulsgym-game") if n > 1 else None
        self._open = True

    @property
    def games(self) -> list[Game]:
        """The games that run now; a restart puts another one in its place."""
        return [fight.game for fight in self._fights]

    def reset(
        self, mask: npt.NDArray[np.bool_], starts: npt.NDArray[Any], seeds: npt.NDArray[np.uint64] | None = None
    ) -> None:
        """Restart the fights of `mask`. Seeds decide the poses that are drawn; the boss cannot be seeded."""
        check_one_for_each("starts", starts, START, self.fights)
        self._check_open()
        which = np.flatnonzero(mask).tolist()
        if seeds is not None:
            for i in which:
                self._generators[i] = np.random.default_rng(int(seeds[i]))
        self._each(which, lambda i: self._fights[i].begin(self._start_of(starts[i], self._generators[i])))

    def step(self, controls: Controls, *, skip: bool = False) -> None:
        """Advance every running fight by 0.1 s of the game, and with `skip` on to where the player can act again.

        What the mask closes is not pressed. Nothing that happens in a game is raised: it ends the fight as BROKEN.
        """
        check_one_for_each("controls", controls, CONTROL, self.fights)
        self._check_open()

        def one(i: int) -> None:
            self._fights[i].step(int(controls[i]["direction"]), int(controls[i]["button"]), skip=skip)

        self._each(list(range(len(self.fights))), one)

    def snapshot(self) -> Snapshot:
        """Copy the records of all fights. The games themselves cannot be copied."""
        hidden = np.zeros(len(self.fights), HIDDEN)
        hidden["phase"] = self.fights["phase"]
        return Snapshot(KIND, copied(self.fights), hidden)

    def restore(self, snapshot: Snapshot) -> None:
        """Restart every fight that was running, with the health and phase that the snapshot tells.

        A game cannot be put back: poses, stamina and what the boss was about to do are those of a new fight.
        """
        if snapshot.kind != KIND:
            raise StartError(f"snapshot is of kind {snapshot.kind!r}, a running game takes {KIND!r}; make it again")
        restart(self, snapshot)

    def check_starts(self, starts: npt.NDArray[Any]) -> None:
        """Refuse starts that no fight can have; for what comes from outside."""
        plan = self.plan
        limits = (
            ("phase", 0, plan.phases),
            ("player_hp", 1, plan.player_hp),
            ("player_sp", plan.player_sp_floor, plan.player_sp),
            ("boss_hp", 1, plan.boss_hp),
        )
        refuse_out_of_range(starts, limits)
        low_m, high_m = np.array([*plan.low_m[:2], -math.pi]), np.array([*plan.high_m[:2], math.pi])
        for key in ("player_pose", "boss_pose"):
            for pose in starts[key][~np.isnan(starts[key][:, 0])]:
                if not ((pose >= low_m - 1e-6) & (pose <= high_m + 1e-6)).all():
                    raise StartError(
                        f"start has {key} = {pose.tolist()}; give x, y inside the arena and a heading within -pi to pi"
                    )

    def close(self) -> None:
        """Leave all games as they were found. Safe to call again, and after whatever error."""
        if not self._open:
            return
        self._open = False
        if self._crew is not None:
            self._crew.shutdown(wait=True)
        for game in self.games:
            game.close()

    def _pacer_of(self, game: Game) -> Pacer:
        title, boss = fight_title(game.title), self.plan.boss

        def animated() -> tuple[float, ...]:
            sight = title.look(boss)
            return sight.player_animation_s, sight.boss_animation_s

        return choose_pacer(
            game.clock,
            lambda: title.glance(boss),
            stepping=self._stepping,
            game_speed=self._game_speed,
            source=self._source,
            animated=animated,
        )

    def _start_of(self, start: Any, generator: np.random.Generator) -> Start:
        plan = self.plan
        given = wanted_pose(plan, start["player_pose"], plan.player_start)
        poses: tuple[Pose, ...] = (given,)
        if start["random_pose"] and np.isnan(start["player_pose"][0]):
            order = generator.permutation(len(plan.player_starts))
            poses = tuple(plan.player_starts[i] for i in order)
        return Start(
            phase=int(start["phase"]) or self._phase,
            player_poses=poses,
            boss_pose=wanted_pose(plan, start["boss_pose"], plan.boss_start),
            player_hp=float(start["player_hp"]),
            player_sp=float(start["player_sp"]),
            boss_hp=float(start["boss_hp"]),
        )

    def _each(self, which: list[int], act: Callable[[int], None]) -> None:
        """Do something for several games, side by side; the first error is raised when all are done."""
        if self._crew is None or len(which) < 2:
            for i in which:
                act(i)
            return
        jobs = [self._crew.submit(act, i) for i in which]
        errors = [error for job in jobs if (error := job.exception()) is not None]
        if errors:
            raise errors[0]

    def _check_open(self) -> None:
        if not self._open:
            raise MisuseError("the engine is closed; make another one")
        for game in self.games:
            if not game.is_open:
                raise MisuseError(
                    f"the game (pid {game.found.pid}) was taken by another environment of this program; use that one"
                )


def missing_fields(plan: GameSetup) -> tuple[str, ...]:
    """The fields of FIGHT that the running game does not tell."""
    return MISSING_FIELDS + (() if plan.boss_moves else OF_MOVES)


def open_engine(plan: GameSetup, options: GameOptions, *, phase: int = 1, changes: bool = False) -> GameEngine:
    """An engine on the running game, which is let go again if that fails."""
    if not 1 <= phase <= plan.phases:
        raise MisuseError(f"phase {phase} is not there; {plan.name} has phases 1 to {plan.phases}")
    launcher = Launcher(options.launch, plan.title) if options.launch else None
    game = attach(plan.title, options.pid, options.display)
    try:
        return GameEngine(
            plan,
            [game],
            phase=phase,
            changes=changes,
            game_speed=options.speed,
            stepping=options.stepping,
            relaunch=launcher,
        )
    except BaseException:
        game.close()
        raise
