"""What the labels of an observation stand for: the moves behind the ids of animations."""

from __future__ import annotations

from soulsgym.spec import FightSpec


def boss_moves_by_label(spec: FightSpec, phase: int) -> dict[int, int]:
    """The move behind each label in a phase: one its decisions lead to, else the first with that animation."""
    boss = spec.boss
    acts = boss.phases[min(max(phase, 1), len(boss.phases)) - 1].acts
    used = {act.name for act in acts} | {link.move for act in acts for chain in act.chains for link in chain.links}
    found: dict[int, int] = {}
    for preferred in (True, False):
        for index, move in enumerate(boss.moves):
            if (move.name in used) is preferred and move.animation in spec.boss_animations:
                found.setdefault(spec.boss_animations.index(move.animation), index)
    return found
