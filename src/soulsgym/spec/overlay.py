"""Variants: a small file laid over a boss's data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta

from soulsgym.spec.boss import HALF_TURN_DEG, Boss, BossMove, Hit, Track, TurnSpeed
from soulsgym.spec.reader import Share

Scale = Annotated[float, Meta(ge=0.0, le=100.0)]


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The boss's content with the variant's values in place of its own, table by table; it shares what is the same."""
    result = dict(below)
    for key, value in above.items():
        inner = result.get(key)
        result[key] = overlay(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return result


@dataclass(frozen=True)
class Adjust:
    """What a variant changes of every blow at once."""

    arc_scale: Scale = 1.0
    half_width_scale: Scale = 1.0
    inner_scale: Share = 1.0
    track_until_hit_deg_per_s: TurnSpeed = 0.0

    def applied_to(self, boss: Boss, sources: Mapping[str, str]) -> Boss:
        """The boss with its blows adjusted; `sources` are those of the adjustments."""
        moves = tuple(self._move(move) for move in boss.moves)
        return replace(boss, moves=moves, sources={**boss.sources, **sources})

    def _move(self, move: BossMove) -> BossMove:
        hits = tuple(self._hit(hit) for hit in move.hits)
        tracks = move.tracks
        until_s = min((hit.from_s for hit in hits), default=0.0)
        if until_s > 0.0 and self.track_until_hit_deg_per_s > 0.0 and move.kind == "attack":
            tracks = (*tracks, Track(0.0, until_s, self.track_until_hit_deg_per_s))
        return replace(move, hits=hits, tracks=tracks)

    def _hit(self, hit: Hit) -> Hit:
        first, last = (max(-HALF_TURN_DEG, min(HALF_TURN_DEG, side * self.arc_scale)) for side in hit.arc_deg)
        return replace(
            hit,
            arc_deg=(first, last),
            half_width_m=hit.half_width_m * self.half_width_scale,
            inner_m=hit.inner_m * self.inner_scale,
        )
