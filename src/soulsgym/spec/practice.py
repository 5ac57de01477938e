"""A boss who does one attack and nothing else, to practise it."""

from __future__ import annotations

from dataclasses import replace

from soulsgym.errors import MisuseError, suggestion
from soulsgym.spec.boss import TURN, Act, Boss, Chain, Phase, Rule
from soulsgym.spec.fight import FightSpec

TURN_BEYOND_DEG = 75.0
"""He turns to a player who is farther round than this."""


def attacks_of(boss: Boss) -> tuple[str, ...]:
    """The attacks that can be practised: those that an act begins with or that follow in a chain."""
    kinds = {move.name: move.kind for move in boss.moves}
    found = [act.first_move for phase in boss.phases for act in phase.acts]
    found += [link.move for phase in boss.phases for act in phase.acts for chain in act.chains for link in chain.links]
    return tuple(name for name in dict.fromkeys(found) if kinds[name] == "attack")


def practice_phase(boss: Boss, attack: str) -> int:
    """The first phase in which the boss does this attack, counted from 1."""
    for number, phase in enumerate(boss.phases, start=1):
        if _act_of(phase, attack) is not None:
            return number
    known = attacks_of(boss)
    raise MisuseError(f"{boss.name} has no attack {attack!r} to practise{suggestion(attack, known)}")


def only_attack(spec: FightSpec, attack: str) -> FightSpec:
    """The same fight with a boss who does nothing but this attack; one that only ever follows comes with its lead."""
    act = _act_of(spec.boss.phases[practice_phase(spec.boss, attack) - 1], attack)
    assert act is not None
    rules = (Rule(beyond_deg=TURN_BEYOND_DEG, weights={TURN: 1.0}), Rule(weights={act.name: 1.0}))
    phases = tuple(
        replace(phase, acts=(act,), rules=rules, interrupts=(), down_approach_weight=0.0) for phase in spec.boss.phases
    )
    return replace(spec, boss=replace(spec.boss, phases=phases))


def _act_of(phase: Phase, attack: str) -> Act | None:
    alone = [_again(act, Chain(1.0)) for act in phase.acts if act.first_move == attack]
    chained = [
        _again(act, Chain(1.0, chain.links[: i + 1]))
        for act in phase.acts
        for chain in act.chains
        for i, link in enumerate(chain.links)
        if link.move == attack
    ]
    return next(iter([*alone, *sorted(chained, key=lambda act: len(act.chains[0].links))]), None)


def _again(act: Act, chain: Chain) -> Act:
    """The act with this one chain, as often as he likes and however far he has to walk for it."""
    return replace(act, chains=(chain,), then={}, cooldown_s=0.0, cooling_weight=1.0, gives_up=False)
