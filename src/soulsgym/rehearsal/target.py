"""The process of a rehearsal: a simulated fight of which only what a game shows comes out.

It is told the boss, the file and the kind of fight on its command line, and answers on its standard output: first a
line of JSON, then for each request on its standard input a record, or a sentence why there is none. A request is a
letter and the bytes that belong to it. The file is read once, at the beginning.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from typing import Any, BinaryIO

import numpy as np

from soulsgym.actions import ACTION_CONTROLS, CONTROL, NOTHING
from soulsgym.engine import START, standard_starts
from soulsgym.errors import SoulsError
from soulsgym.rehearsal.engine import REFUSED, RESET, SHOWN, SKIP
from soulsgym.sim.engine import SimEngine
from soulsgym.sim.pack import pack
from soulsgym.spec import FightSpec, is_path, load_fight
from soulsgym.spec.fight import expanded
from soulsgym.spec.reader import parse_toml, read_text
from soulsgym.state import Fights

HEAD = "title"
"""A key that every boss's file has, and no overlay."""


def load_target(boss: str, file: str) -> FightSpec:
    """The fight of a file: a boss of its own, or what is laid over `boss`; a name is that of one of his variants."""
    if not is_path(file):
        return load_fight(boss, file)
    path = expanded(file)
    if HEAD in parse_toml(path, read_text(path)):
        return load_fight(str(path.absolute()))
    return load_fight(boss, str(path.absolute()))


class Target:
    """One fight, seeded by the system alone."""

    def __init__(self, spec: FightSpec, *, phase: int, changes: bool) -> None:
        self._engine = SimEngine(spec, 1, phase=phase, changes=changes)
        self._everyone = np.ones(1, np.bool_)
        player = {label.name: i for i, label in enumerate(spec.player_animations)}
        boss = {name: i for i, name in enumerate(spec.boss_animations)}
        # Of a move the game shows its animation; the last entry stands for none.
        self._player_labels = [*(player.get(move.animation, -1) for move in spec.player.moves), -1]
        self._boss_labels = [*(boss.get(move.animation, -1) for move in spec.boss.moves), -1]
        self.about: dict[str, Any] = {
            "player_animations": list(player),
            "boss_animations": list(boss),
            "phases": len(spec.boss.phases),
            "digest": hashlib.sha256(pack(spec).tobytes()).hexdigest()[:16],
        }
        # Compiled now, while whoever waits for the first answer is patient.
        self.reset(standard_starts(1).tobytes())
        self.step(ACTION_CONTROLS[[NOTHING]].tobytes(), skip=False)

    def reset(self, start: bytes) -> Fights:
        """Begin a fight and show it."""
        starts = np.frombuffer(start, START)
        self._engine.check_starts(starts)
        seed = np.frombuffer(os.urandom(8), np.uint64)
        self._engine.reset(self._everyone, starts, seed)
        return self._shown()

    def step(self, control: bytes, *, skip: bool) -> Fights:
        """Play on and show the fight."""
        self._engine.step(np.frombuffer(control, CONTROL), skip=skip)
        return self._shown()

    def _shown(self) -> Fights:
        """The record without what a game does not tell; blows are known by the animation that they belong to."""
        shown = self._engine.fights.copy()
        for key in ("hit_by", "killed_by"):
            shown[key] = self._boss_labels[int(shown[key][0])]
        landed = int(shown["landed"][0])
        shown["landed"] = self._player_labels[landed] if landed >= -1 else -1
        shown["boss_move"], shown["player_move"], shown["dodged"] = -1, -1, -1
        shown["boss_move_s"], shown["player_move_s"], shown["invulnerable"] = 0.0, 0.0, 0
        return shown


def serve(target: Target, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer until nobody asks any more."""
    while kind := requests.read(1):
        try:
            if kind == RESET:
                shown = target.reset(requests.read(START.itemsize))
            else:
                shown = target.step(requests.read(CONTROL.itemsize), skip=kind == SKIP)
            replies.write(SHOWN + shown.tobytes())
        except SoulsError as error:
            replies.write(REFUSED + json.dumps(str(error)).encode() + b"\n")
        replies.flush()


def main() -> None:
    """Read the file, say what it is, and answer requests."""
    parser = argparse.ArgumentParser()
    parser.add_argument("boss")
    parser.add_argument("file")
    parser.add_argument("--phase", type=int, required=True)
    parser.add_argument("--changes", type=int, required=True)
    given = parser.parse_args()
    # Whatever prints must not come between the records.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        target = Target(load_target(given.boss, given.file), phase=given.phase, changes=bool(given.changes))
        about = target.about
    except SoulsError as error:
        about = {"error": str(error)}
    try:
        replies.write(json.dumps(about).encode() + b"\n")
        replies.flush()
        if "error" not in about:
            serve(target, sys.stdin.buffer, replies)
    except BrokenPipeError:
        os._exit(1)  # whoever asked was killed, and nobody is left to tell


if __name__ == "__main__":
    main()
