"""What goes wrong and when: made from a seed, so that the same plan can be run again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import cycle

WORKERS = ("ann", "amy", "bob", "cat")
"""Processes of `souls join`. Ann and Amy share an invitation; Bob plays through the proxy; Cat is the one frozen."""
NAMES = {"ann": "ann", "amy": "ann", "bob": "bob", "cat": "cat"}
"""By whose invitation each of them joins."""
HOWS = ("tree", "parent", "child")
"""What of a worker is killed: both of its processes, only the one that was started, or only the one that plays."""


@dataclass(frozen=True)
class Span:
    """From when, and for how long."""

    at_s: float
    for_s: float

    def covers(self, at_s: float, before_s: float, after_s: float) -> bool:
        """Whether a moment is in it, or shortly before or after."""
        return self.at_s - before_s <= at_s <= self.at_s + self.for_s + after_s


@dataclass(frozen=True)
class Scale:
    """How long it all takes, and what it must lead to."""

    name: str
    length_s: float
    kill_every_s: float
    learner: tuple[Span, ...]
    redis: Span
    freeze: Span
    cut: Span
    spare_s: tuple[float, float]
    """Before and after it is frozen or cut off, a worker is not killed."""
    steps: int
    """After the plan the run goes on until it has so many: a slow machine has not made enough of them by then."""
    returns: float
    """Mean return that the agent has to reach; a random one has about 22."""


@dataclass(frozen=True, order=True)
class Event:
    """One fault, or its end."""

    at_s: float
    what: str = field(compare=False)
    who: str = field(compare=False, default="")
    how: str = field(compare=False, default="")

    def __str__(self) -> str:
        return " ".join(part for part in (f"{self.at_s:6.1f} s", self.what, self.who, self.how) if part)


LONG = Scale(
    name="long",
    length_s=180.0,
    kill_every_s=10.0,
    learner=(Span(43.0, 4.0), Span(124.0, 4.0)),
    redis=Span(83.0, 5.0),
    freeze=Span(62.0, 30.0),
    cut=Span(106.0, 30.0),
    spare_s=(15.0, 15.0),
    steps=120_000,
    returns=195.0,
)
SHORT = Scale(
    name="short",
    length_s=30.0,
    kill_every_s=6.0,
    learner=(Span(8.0, 2.0),),
    redis=Span(13.5, 2.5),
    freeze=Span(4.0, 6.0),
    cut=Span(18.5, 6.0),
    spare_s=(7.0, 5.0),
    steps=40_000,
    returns=60.0,
)


def make_plan(scale: Scale, seed: int) -> list[Event]:
    """All faults in their order. A worker is killed at every turn; which one is random, and the ways take turns."""
    chance = random.Random(seed)
    events: list[Event] = []
    hows = cycle(chance.sample(HOWS, len(HOWS)))
    at_s = scale.kill_every_s
    while at_s < scale.length_s:
        spared = {who for who, span in (("cat", scale.freeze), ("bob", scale.cut)) if span.covers(at_s, *scale.spare_s)}
        who = chance.choice([name for name in WORKERS if name not in spared])
        events.append(Event(at_s, "kill a worker", who, next(hows)))
        at_s += scale.kill_every_s
    for span in scale.learner:
        events += [Event(span.at_s, "kill the learner"), Event(span.at_s + span.for_s, "start the learner")]
    events += [Event(scale.redis.at_s, "kill Redis"), Event(scale.redis.at_s + scale.redis.for_s, "start Redis")]
    events += [
        Event(scale.freeze.at_s, "freeze", "cat"),
        Event(scale.freeze.at_s + scale.freeze.for_s, "thaw", "cat"),
    ]
    half_s = scale.cut.for_s / 2.0
    events += [
        Event(scale.cut.at_s, "refuse", "bob"),
        Event(scale.cut.at_s + half_s, "hold back", "bob"),
        Event(scale.cut.at_s + scale.cut.for_s, "let through", "bob"),
    ]
    return sorted(events)
