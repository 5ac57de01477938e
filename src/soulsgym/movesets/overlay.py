"""Variants: a small file laid over a boss's data."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from soulsgym.movesets.reader import Table

HALF_TURN_DEG = 180.0


def overlay(content: dict[str, Any], file: Path, variant: dict[str, Any]) -> dict[str, Any]:
    """The boss's content with the variant's values in place of its own, and its adjustments applied to every blow."""
    changes = copy.deepcopy(variant)
    adjust = changes.pop("adjust", None)
    merged = _merged(content, changes)
    return merged if adjust is None else _adjusted(merged, Table(file, "adjust", adjust))


def _merged(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(below)
    for key, value in above.items():
        inner = result.get(key)
        result[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, Mapping) else value
    return result


def _adjusted(content: dict[str, Any], table: Table) -> dict[str, Any]:
    arc_scale = table.number("arc_scale", low=0.0, default=1.0)
    width_scale = table.number("half_width_scale", low=0.0, default=1.0)
    inner_scale = table.number("inner_scale", low=0.0, high=1.0, default=1.0)
    track_deg_per_s = table.number("track_until_hit_deg_per_s", low=0.0, default=0.0)
    table.close()
    for move in content.get("move", {}).values():
        hits = move.get("hit", {}).values()
        for hit in hits:
            if "arc_deg" in hit:
                hit["arc_deg"] = [max(-HALF_TURN_DEG, min(HALF_TURN_DEG, side * arc_scale)) for side in hit["arc_deg"]]
            if "half_width_m" in hit:
                hit["half_width_m"] *= width_scale
            if "inner_m" in hit:
                hit["inner_m"] *= inner_scale
        if hits and track_deg_per_s > 0.0 and move.get("kind", "attack") == "attack":
            until_s = min(hit["from_s"] for hit in hits)
            move.setdefault("track", {})["variant"] = {
                "from_s": 0.0, "to_s": until_s, "deg_per_s": track_deg_per_s, "source": "guess",
            }  # fmt: skip
    return content
