"""From recordings to the overlay of a boss."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import tomli_w

from soulsgym.calibration.blows import blow_estimates
from soulsgym.calibration.character import character_estimates
from soulsgym.calibration.decisions import Choices, decision_estimates, phase_estimates
from soulsgym.calibration.estimate import Estimate, number_at, overlay_of
from soulsgym.calibration.motion import chase_estimates, motion_estimates, read_steps, turning_estimates
from soulsgym.calibration.timeline import Bout, read_bouts
from soulsgym.calibration.timing import read_timings, timing_estimates
from soulsgym.calibration.unknown import new_moves
from soulsgym.errors import RecordingError
from soulsgym.recordings.recording import Recording
from soulsgym.spec import FightSpec
from soulsgym.spec.fight import FightFiles, lay_over
from soulsgym.spec.overlay import overlay

CALIBRATED = "calibrated"
FEWEST_ATTACKS = 20


@dataclass(frozen=True)
class Calibration:
    """What recordings tell of a boss."""

    files: FightFiles
    estimates: tuple[Estimate, ...]
    additions: dict[str, Any]
    """Attacks and chains that his file does not have."""
    bouts: tuple[Bout, ...]
    character: tuple[Estimate, ...] = ()
    """What was seen of the player himself; a variant of the boss cannot change it."""

    @cached_property
    def overlay(self) -> dict[str, Any]:
        """What to lay over his file."""
        return overlay(overlay_of(self.files.content, self.estimates), self.additions)

    @property
    def known(self) -> dict[str, list[float]]:
        """By key, how often a number was seen, its lowest and its highest."""
        found = {}
        for one in self.estimates:
            if isinstance(one.value, float) and not any(isinstance(part, int) for part in one.path):
                written = number_at(
                    self.overlay, one.path
                )  # what had to give way to another number lies beside its own
                found[one.key] = [one.n, float(min(one.low, written)), float(max(one.high, written))]
        return found

    def text(self) -> str:
        """The file of the overlay."""
        lines = [f"{json.dumps(key)} = [{n}, {low:.10g}, {high:.10g}]" for key, (n, low, high) in self.known.items()]
        steps = sum(len(bout.fights) for bout in self.bouts)
        return (
            f"# What {len(self.bouts)} recorded fights ({steps} steps) tell of {self.files.boss_name}.\n"
            f"# Numbers that were not seen are those of {self.files.boss.path.name}.\n\n"
            + tomli_w.dumps(self.overlay)
            + "\n# How often a number was seen, and the interval that holds it in nine cases of ten.\n[known]\n"
            + "\n".join(lines)
            + "\n"
        )

    @cached_property
    def spec(self) -> FightSpec:
        """The boss as he was seen."""
        return lay_over(self.files, self.overlay, self.files.boss.path, CALIBRATED)


def calibrate(recordings: Sequence[Recording], files: FightFiles) -> Calibration:
    """Estimate all that the recordings tell; RecordingError if they tell nothing of this boss."""
    spec = calibrated(files, ())
    recordings = _distinct(recordings)
    bouts = read_bouts(recordings, spec)
    _check(recordings, bouts, files)
    timings = read_timings(bouts, spec)
    times = timing_estimates(bouts, timings, spec)
    known = times + turning_estimates(bouts, spec)
    now = calibrated(files, known)
    known += motion_estimates(read_steps(recordings, now), now)
    known += chase_estimates(recordings, calibrated(files, known))
    now = calibrated(files, known)
    known += blow_estimates(bouts, now)
    choices = Choices(bouts, now)
    known += decision_estimates(choices, now, files.content)
    known += phase_estimates(bouts, now)
    found = overlay_of(files.content, known)
    additions = new_moves(bouts, timings, choices, now, overlay(files.content, found))
    return Calibration(files, tuple(known), additions, tuple(bouts), tuple(character_estimates(bouts, spec)))


def _distinct(recordings: Sequence[Recording]) -> list[Recording]:
    """Each recording once, whatever it is called: a copy tells nothing new."""
    return list({sha256(one.fights.tobytes()).digest(): one for one in reversed(recordings)}.values())[::-1]


def _check(recordings: Sequence[Recording], bouts: Sequence[Bout], files: FightFiles) -> None:
    attacks = [span for bout in bouts for span in bout.spans if span.is_attack]
    known = [span for span in attacks if span.move >= 0]
    names = ", ".join(recording.source for recording in recordings)
    if len(attacks) < FEWEST_ATTACKS:
        raise RecordingError(
            f"{names}: shows {len(attacks)} attacks of the boss, too few to tell anything; "
            f"record until there are {FEWEST_ATTACKS}"
        )
    health = sorted({int(hp) for bout in bouts for hp in bout.fights["boss_max_hp"]})
    if health[0] < 1:
        raise RecordingError(f"{names}: the boss has {health[0]} hit points; give recordings of a fight")
    if len(health) > 1:
        raise RecordingError(
            f"{names}: the boss has {' and '.join(map(str, health))} hit points, so these are different fights; "
            "give recordings of one"
        )
    if len(known) < len(attacks) / 2:
        raise RecordingError(
            f"{names}: {len(attacks) - len(known)} of {len(attacks)} attacks are none of {files.boss_name}'s; "
            "give the boss that was recorded"
        )


def calibrated(files: FightFiles, estimates: Sequence[Estimate]) -> FightSpec:
    """The boss of these files with estimates in place of his numbers."""
    return lay_over(files, overlay_of(files.content, estimates), files.boss.path, CALIBRATED)
