"""What the stand-in is compiled with is refused where its code could not follow it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from generate import BOSSES, check_rules, spec_of

from soulsgym.errors import DataError
from soulsgym.spec import load_fight
from soulsgym.spec.boss import Interrupt, Run

IUDEX = load_fight("iudex")


def changed(**changes):
    """Iudex with another first phase."""
    first, *rest = IUDEX.boss.phases
    return replace(IUDEX, boss=replace(IUDEX.boss, phases=(replace(first, **changes), *rest)))


def with_hop():
    moves = [replace(move, kind="hop", hits=()) if move.name == "punch" else move for move in IUDEX.boss.moves]
    return replace(IUDEX, boss=replace(IUDEX.boss, moves=tuple(moves)))


def with_run():
    first, *rest = IUDEX.boss.phases[0].acts
    return changed(acts=(replace(first, run=Run(from_m=20.0, chance=0.5, always_from_m=25.0, approach_m=24.0)), *rest))


def with_timer():
    first, *rest = IUDEX.boss.phases[0].rules
    return changed(rules=(replace(first, every_s=9.0), *rest))


def with_interrupt():
    act = IUDEX.boss.phases[0].acts[0].name
    return changed(interrupts=(Interrupt(moves=("swing",), at_s=1.0, act=act),))


@pytest.mark.parametrize("boss", BOSSES)
def test_the_bosses_of_the_stand_in_do_only_what_it_knows(boss):
    check_rules(spec_of(boss))


@pytest.mark.parametrize(
    ("spec", "key"),
    [(with_hop, "move.punch.kind"), (with_run, f"phase.1.act.{IUDEX.boss.phases[0].acts[0].name}.run"),
     (with_timer, "phase.1.rule.every_s"), (with_interrupt, "phase.1.interrupt")],
)  # fmt: skip
def test_a_boss_who_does_more_is_refused_in_one_sentence(spec, key):
    with pytest.raises(DataError, match=r"is not known to the stand-in; add it to boss\.c$") as caught:
        check_rules(spec())
    assert caught.value.key == key
