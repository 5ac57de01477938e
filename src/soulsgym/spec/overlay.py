"""Variants: a small file laid over a boss's data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from soulsgym.spec.boss import FASTEST_TURN_DEG_PER_S, HALF_TURN_DEG, Boss, BossMove, Hit, Track
from soulsgym.spec.reader import Table


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

    arc_scale: float
    half_width_scale: float
    inner_scale: float
    track_until_hit_deg_per_s: float
    sources: Mapping[str, str]

    def applied_to(self, boss: Boss) -> Boss:
        """The boss with its blows adjusted."""
        sources = {f"adjust.{key}": source for key, source in self.sources.items()}
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


def parse_adjust(file: Path, content: object) -> Adjust:
    """The [adjust] table of a variant's file."""
    table = Table(file, "adjust", content)
    scales = {key: table.number(key, low=0.0, high=100.0, default=1.0) for key in ("arc_scale", "half_width_scale")}
    inner_scale = table.number("inner_scale", low=0.0, high=1.0, default=1.0)
    track = table.number("track_until_hit_deg_per_s", low=0.0, high=FASTEST_TURN_DEG_PER_S, default=0.0)
    return Adjust(**scales, inner_scale=inner_scale, track_until_hit_deg_per_s=track, sources=table.close())
