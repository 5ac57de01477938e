"""RehearsalEngine: a fight in a simulator that stands in for the game, behind the protocol of both engines."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import CONTROL, Controls
from soulsgym.engine import START, Snapshot, check_one_for_each, restart
from soulsgym.errors import GameGone, GameHung, MisuseError, StartError
from soulsgym.spec import FightSpec
from soulsgym.spec.game import boss_moves_by_animation, player_moves_by_animation
from soulsgym.state import FIGHT, Fights, Outcome, copied

KIND = "rehearsal-1"
"""Kind of a snapshot."""
HIDDEN = np.dtype([("phase", "i4")])
MISSING_FIELDS = ("dodged", "invulnerable", "boss_move", "boss_move_s", "player_move_s")
"""What a rehearsal does not tell, as little as a game."""
RESET, STEP, SKIP = b"R", b"S", b"K"
"""What is asked of the process: begin a fight; play a step; play on to where the player can act again."""
SHOWN, REFUSED = b".", b"!"
"""How an answer begins: with a record after it, or with a sentence why there is none."""
OPEN_S, ANSWER_S = 300.0, 60.0
"""How long the process may take to be ready, with the simulator compiled, and for an answer."""
LEAST_SHARED = 0.8
"""Of the boss's animations; other bosses share 0.6 at most, and one with an attack in place of another nearly all."""
NEW_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""Ctrl-C in a terminal is meant for whoever plays, who then ends the process."""
LOOK_S = 0.5
"""How often somebody looks whether an answer is overdue."""


@dataclass(frozen=True)
class RehearsalOptions:
    """Which file stands in for the game, and how many steps a second it plays; 0: as fast as it goes."""

    file: str
    pace: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.pace < math.inf:
            raise MisuseError(f"pace {self.pace} is not possible; give steps a second, or 0 for as fast as it goes")


class RehearsalEngine:
    """One fight against the boss of a file that nothing but its own process reads.

    It shows what a game shows: no moves of the boss but their animations, no dodges, no seeds, no snapshots.
    """

    missing_fields: tuple[str, ...] = MISSING_FIELDS

    def __init__(self, spec: FightSpec, options: RehearsalOptions, *, phase: int = 1, changes: bool = False) -> None:
        """`spec` says what is known of the boss: what his animations are called, and the moves they stand for."""
        self.spec, self.steps = spec, 0
        self.fights: Fights = np.zeros(1, FIGHT)
        self.fights["outcome"] = Outcome.DIED
        self.statuses: npt.NDArray[Any] = np.zeros(1, np.dtype([]))
        self.notes: list[dict[str, Any]] = [{}]
        self._file, self._pace, self._next_s = options.file, options.pace, 0.0
        command = [sys.executable, "-m", "soulsgym.rehearsal.target", spec.boss_name, options.file]
        command += ["--phase", str(phase), "--changes", str(int(changes))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, creationflags=NEW_GROUP
        )
        self._deadline_s, self._hung, self._open = math.inf, False, True
        threading.Thread(target=self._watch, name="rehearsal", daemon=True).start()
        try:
            about = self._begin()
        except BaseException:
            self.close()
            raise
        self.digest: str = about["digest"]
        """Other as soon as a number of the file is; it tells none of them."""
        self._player_names, self._boss_names = [*about["player_animations"], ""], [*about["boss_animations"], ""]
        player = {animation.name: i for i, animation in enumerate(spec.player_animations)}
        boss = {name: i for i, name in enumerate(spec.boss_animations)}
        # By its label: ours, or -1 for one that our tables do not have. The last entry stands for -1.
        self._player_ids = [player.get(name, -1) for name in self._player_names]
        self._boss_ids = [boss.get(name, -1) for name in self._boss_names]
        self._player_moves, self._boss_moves = (
            player_moves_by_animation(spec.player),
            boss_moves_by_animation(spec.boss),
        )

    @property
    def games(self) -> list[Any]:
        """None: MisuseError."""
        raise MisuseError(f"{self._file} replaces the game, so there is no game to inspect; attach to one")

    def reset(
        self, mask: npt.NDArray[np.bool_], starts: npt.NDArray[Any], seeds: npt.NDArray[np.uint64] | None = None
    ) -> None:
        """Begin the fight again if `mask` says so. Seeds decide nothing: a game has none."""
        check_one_for_each("starts", starts, START, self.fights)
        if mask[0]:
            self._ask(RESET, starts.tobytes())

    def step(self, controls: Controls, *, skip: bool = False) -> None:
        """Advance the fight by 0.1 s, and with `skip` on to where the player can act again."""
        check_one_for_each("controls", controls, CONTROL, self.fights)
        before = int(self.fights["step"][0])
        self._ask(SKIP if skip else STEP, controls.tobytes())
        self._take_time(int(self.fights["step"][0]) - before)

    def snapshot(self) -> Snapshot:
        """Copy the record. The fight itself cannot be copied."""
        hidden = np.zeros(1, HIDDEN)
        hidden["phase"] = self.fights["phase"]
        return Snapshot(KIND, copied(self.fights), hidden)

    def restore(self, snapshot: Snapshot) -> None:
        """Begin a fight with the health and phase that the snapshot tells, if it was running."""
        if snapshot.kind != KIND:
            raise StartError(f"snapshot is of kind {snapshot.kind!r}, a rehearsal takes {KIND!r}; make it again")
        restart(self, snapshot)

    def check_starts(self, starts: npt.NDArray[Any]) -> None:
        """Nothing here: starts are checked where the fight is played."""

    def close(self) -> None:
        """End the process. Safe to call again."""
        if not self._open:
            return
        self._open = False
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10.0)

    def _begin(self) -> dict[str, Any]:
        line = self._read(0, OPEN_S)
        about: dict[str, Any] = json.loads(line)
        if "error" in about:
            raise MisuseError(about["error"])
        known = len(self.spec.boss.phases)
        if about["phases"] != known:
            raise MisuseError(
                f"{self._file} has {about['phases']} phases and {self.spec.boss.name} {known}; "
                "give a file of the same boss"
            )
        ours, theirs = set(self.spec.boss_animations), set(about["boss_animations"])
        is_part = ours <= theirs or theirs <= ours
        if not is_part and len(ours & theirs) < LEAST_SHARED * len(ours | theirs):
            raise MisuseError(
                f"{self._file} is of another boss than {self.spec.boss.name}: one has {min(ours - theirs)} and the "
                f"other {min(theirs - ours)}; give a file of the same boss"
            )
        return about

    def _ask(self, kind: bytes, rest: bytes) -> None:
        assert self._process.stdin is not None
        if not self._open:
            raise MisuseError("the engine is closed; make another one")
        try:
            self._process.stdin.write(kind + rest)
            self._process.stdin.flush()
        except OSError:
            raise self._failure() from None
        if self._read(1, ANSWER_S) == REFUSED:
            raise StartError(json.loads(self._read(0, ANSWER_S)))
        shown = np.frombuffer(self._read(FIGHT.itemsize, ANSWER_S), FIGHT)
        self.fights.view(np.uint8)[:] = shown.view(np.uint8)
        self._name()

    def _name(self) -> None:
        """Give labels our numbers, and name blows by the animations they belong to, as with the running game."""
        fight = self.fights[0]
        boss_moves = self._boss_moves[int(fight["phase"]) - 1]
        for key in ("hit_by", "killed_by"):
            fight[key] = boss_moves.get(self._boss_names[fight[key]], -1)
        fight["landed"] = self._player_moves.get(self._player_names[fight["landed"]], -1)
        fight["player_move"] = self._player_moves.get(self._player_names[fight["player_animation"]], -1)
        fight["player_animation"] = self._player_ids[fight["player_animation"]]
        fight["boss_animation"] = self._boss_ids[fight["boss_animation"]]

    def _take_time(self, steps: int) -> None:
        self.steps += steps
        if self._pace:
            now_s = time.monotonic()
            self._next_s = max(self._next_s, now_s) + steps / self._pace
            time.sleep(self._next_s - now_s)

    def _read(self, size: int, patience_s: float) -> bytes:
        """So many bytes, or a line for 0; GameGone or GameHung if they do not come."""
        assert self._process.stdout is not None
        self._deadline_s = time.monotonic() + patience_s
        answer = self._process.stdout.read(size) if size else self._process.stdout.readline()
        self._deadline_s = math.inf
        if len(answer) < max(1, size):
            raise self._failure()
        return answer

    def _failure(self) -> Exception:
        if self._hung:
            return GameHung(f"the rehearsal of {self._file} does not answer; begin it again")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)  # its pipe may close a moment before
        code = self._process.poll()
        return GameGone(f"the rehearsal of {self._file} has ended with {code}; begin it again")

    def _watch(self) -> None:
        """End a process that does not answer: whoever waits for it then finds its pipe closed."""
        while self._open and self._process.poll() is None:
            if time.monotonic() > self._deadline_s:
                self._hung = True
                self._process.kill()
            time.sleep(LOOK_S)
