"""Runs for Prometheus: the last known value of every metric, as its text format."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from soulsai.telemetry.metric import Metric
from soulsai.telemetry.metrics import METRICS, RUN_METRICS, metric
from soulsgym.errors import MisuseError

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""Content type of `exposition`."""
GONE_S = 3600.0
"""Workers silent for longer than this are not listed, like those that have left."""
LONGEST_LABEL = 200
UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
"""Characters not allowed in a label."""

TIME = METRICS["time/<phase>"].prefix
FLEET = "fleet/sent"
REASONS = ("lost_by_redis", "stale")
"""Usual reasons for dropped rows, exported as 0 before the first one: otherwise `increase()` misses it."""

GATEWAY_DROPS = ("chunks", "bytes", "invalid")
GATEWAY_REFUSALS = ("credentials", "address")
"""The same of a gateway."""

Sample = tuple[str, tuple[str, ...], float]
"""A declared name, the values of its labels, and its value."""


@dataclass(frozen=True)
class RunReading:
    """A run as it is at one moment."""

    run: str
    state: str
    step: int = 0
    steps: int = 0
    """Environment steps that are wanted; 0: not known."""
    values: Mapping[str, float] | None = None
    """The last known value of each metric."""
    updated_s: float | None = None
    """When the last row was written, in seconds since 1970; None: never."""
    fleet: Mapping[str, Any] | None = None
    """What `souls fleet --json` prints, if its workers are known now."""


def exposition(readings: Sequence[RunReading], now_s: float | None = None) -> bytes:
    """All runs in the text format of Prometheus; what is no finite number, or not declared, is left out."""
    now_s = time.time() if now_s is None else now_s
    samples = [sample for reading in readings for sample in _samples(reading, now_s)]
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_SampleCollector(samples))
    return generate_latest(registry)


def last_values(latest: Mapping[str, tuple[int, float]]) -> dict[str, float]:
    """The last value of each metric, of those with the numbers of their rows.

    Shares of the loop's time belong together: an old one beside new ones would make more than the whole.
    """
    shares = max((row for name, (row, _) in latest.items() if name.startswith(TIME)), default=0)
    return {name: value for name, (row, value) in latest.items() if row >= shares or not name.startswith(TIME)}


class _SampleCollector(Collector):
    """The samples, grouped by metric for the client library."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples: dict[str, dict[tuple[str, ...], float]] = {}
        for name, labels, value in samples:
            # The first of two that look alike counts: Prometheus would refuse everything if both were there.
            self._samples.setdefault(name, {}).setdefault(tuple(map(label_text, labels)), value)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """In the order of the declarations."""
        for name, declared in (RUN_METRICS | METRICS).items():
            if name not in self._samples:
                continue
            kind = CounterMetricFamily if declared.kind == "counter" else GaugeMetricFamily
            family = kind(declared.prometheus, help_text(declared), labels=declared.prometheus_labels)
            for labels, value in self._samples[name].items():
                family.add_metric(labels, value * declared.factor)
            yield family


def help_text(declared: Metric) -> str:
    """What Prometheus shows beside the name; units that its name does not have are in it."""
    in_name = not declared.unit or declared.factor != 1.0 or declared.unit in ("s", "1/s", "share")
    return declared.text if in_name else f"{declared.text} ({declared.unit})"


def label_text(text: object) -> str:
    """A value of a label from whatever text: without characters that would break it, and not too long."""
    return UNFIT.sub("\N{REPLACEMENT CHARACTER}", str(text))[:LONGEST_LABEL]


def _samples(reading: RunReading, now_s: float) -> Iterator[Sample]:
    run = reading.run
    found: list[tuple[str, tuple[str, ...], Any]] = [
        ("run/state/<state>", (run, reading.state), 1.0),
        ("run/steps", (run,), reading.step),
        ("run/steps_wanted", (run,), reading.steps or None),
        ("run/row_age_s", (run,), _age(reading.updated_s, now_s)),
    ]
    found += _of_values(run, reading.values or {})
    if reading.fleet is not None:
        found += _of_fleet(run, reading.fleet)
    if reading.fleet is not None or FLEET in (reading.values or {}):
        found += [("fleet/dropped/<reason>", (run, reason), 0.0) for reason in REASONS]  # unless there is one already
    for name, labels, value in found:
        if is_number(value):
            yield name, labels, float(value)


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number that a 64-bit float can hold."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _age(updated_s: float | None, now_s: float) -> float | None:
    return max(0.0, now_s - updated_s) if is_number(updated_s) else None


def _of_values(run: str, values: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    for name, value in values.items():
        try:
            declared = metric(name)
        except MisuseError:
            continue  # of another version of this program
        yield declared.name, (run, *([name[len(declared.prefix) :]] if declared.prefix else [])), value


def _of_fleet(run: str, fleet: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    workers = [each for each in fleet.get("workers") or () if isinstance(each, Mapping)]
    names = [str(each.get("worker")).partition(".")[0] for each in workers] or [""]
    for name, messages in (dict.fromkeys(names, 0) | _table(fleet.get("unreadable"))).items():
        yield "run/unreadable/<name>", (run, name), messages
    refused = _table(fleet.get("refused"))
    for name in dict.fromkeys([*names, *refused]):
        yield "run/refused/<name>", (run, name), sum(filter(is_number, _table(refused.get(name)).values()))
    if isinstance(gateway := fleet.get("gateway"), Mapping):
        yield from _of_gateway(run, gateway)
    for worker in workers:
        if not _is_gone(worker):
            yield from _of_worker((run, str(worker.get("worker"))), worker)


def _of_gateway(run: str, gateway: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    for name in ("connections", "accepted", "bytes", "passed"):
        yield f"gateway/{name}", (run,), gateway.get(name)
    for what, reasons in (("dropped", GATEWAY_DROPS), ("refused", GATEWAY_REFUSALS)):
        for reason, count in (dict.fromkeys(reasons, 0) | _table(gateway.get(what))).items():
            yield f"gateway/{what}/<reason>", (run, reason), count


def _is_gone(worker: Mapping[str, Any]) -> bool:
    state, seen_s = worker.get("state"), worker.get("seen_s")
    return state == "left" or (state == "silent" and not (is_number(seen_s) and seen_s < GONE_S))


def _of_worker(who: tuple[str, str], worker: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    yield "worker/state/<state>", (*who, worker.get("state", "")), 1.0
    yield "worker/beat_age_s", who, worker.get("seen_s")
    for name in ("steps_per_s", "lag", "restarts", "episodes", "sent", "stored", "in_flight"):
        yield f"worker/{name}", who, worker.get(name)
    for reason, rows in (dict.fromkeys(REASONS, 0) | _table(worker.get("dropped"))).items():
        yield "worker/dropped/<reason>", (*who, reason), rows


def _table(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
