"""What is not known yet, and what to record to find out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from soulsgym.calibration.calibrate import Calibration
from soulsgym.render.names import move_name
from soulsgym.spec.boss import BossMove, Hit

ENOUGH = 15
"""Times that an attack must be seen to be known well."""
SHARP_M = 0.5
"""Width of an interval of metres below which a reach is known."""
USUAL_SHARE = 0.2
"""How far a reach may be from the file's where the file does not say."""


@dataclass(frozen=True)
class Advice:
    """An attack about which too little is known: how often it was seen, and between what its reach lies."""

    move: str
    name: str
    """Of the move, as players call it."""
    phase: int
    seen: int
    low_m: float
    high_m: float
    needs: float
    """How much is missing: the larger, the sooner it should be recorded."""

    def __str__(self) -> str:
        finish = f"let him finish {self.name} ({self.move}) in phase {self.phase}"
        if self.high_m - self.low_m <= SHARP_M:
            return f"{finish} more often: {self.seen} seen"
        return (
            f"stand {max(self.low_m - 0.5, 0.0):.0f} to {self.high_m + 0.5:.0f} m away and {finish}: "
            f"{self.seen} seen, reach unknown between {self.low_m:.1f} and {self.high_m:.1f} m"
        )


def advice(calibration: Calibration) -> list[Advice]:
    """What to record next, the most needed first."""
    spec = calibration.spec
    seen = Counter((span.phase, span.label) for bout in calibration.bouts for span in bout.spans if span.is_attack)
    intervals = {one.path[1:4:2]: (one.low, one.high) for one in calibration.estimates if one.path[-1] == "reach_m"}
    share = spec.boss.draw.reach if spec.boss.draw else USUAL_SHARE
    found = []
    for number, phase in enumerate(spec.boss.phases, start=1):
        weights: Counter[str] = Counter()
        for rule in phase.rules:
            weights.update(rule.weights)
        names = {act.first_move for act in phase.acts}
        names |= {link.move for act in phase.acts for chain in act.chains for link in chain.links}
        for move in spec.boss.moves:
            if move.name not in names or not move.hits:
                continue
            times = seen[number, spec.boss_animations.index(move.animation)]
            low_m, high_m = _reach(move, intervals, share)
            missing = max(0.0, 1.0 - times / ENOUGH) + max(0.0, high_m - low_m - SHARP_M)
            if missing > 0.0:
                needs = missing * (1.0 + weights[move.name] / max(sum(weights.values()), 1.0))
                name = move_name(calibration.files.boss_name, move.name)
                found.append(Advice(move.name, name, number, times, low_m, high_m, needs))
    return sorted(found, key=lambda one: -one.needs)


def _reach(
    move: BossMove, intervals: dict[tuple[str | int, ...], tuple[float, float]], share: float
) -> tuple[float, float]:
    """Between what the reach of a move's farthest blow lies."""

    def interval(hit: Hit) -> tuple[float, float]:
        usual = hit.reach_m * (1.0 - share), hit.reach_m * (1.0 + share)
        low, high = intervals.get((move.name, hit.name), usual)
        return low + abs(hit.offset_m), high + abs(hit.offset_m)

    return max((interval(hit) for hit in move.hits), key=lambda pair: pair[1] - pair[0])
