"""All metrics, declared once; the documentation is generated from here."""

from __future__ import annotations

from functools import lru_cache

from soulsai.config.algorithms import algorithm_modules
from soulsai.config.refusal import way_out
from soulsai.telemetry.metric import Metric
from soulsgym.errors import MisuseError

_COMMON = (
    Metric("win_rate/training", "share", "won among the last 200 training fights that began with the standard start"),
    Metric("win_rate/evaluation", "share", "won in the last evaluation: greedy, unseen seeds, time-outs are losses"),
    Metric("win_rate/evaluation_low", "share", "lower end of its 95 % Wilson interval"),
    Metric("win_rate/evaluation_high", "share", "upper end of its 95 % Wilson interval"),
    Metric("time_out_rate/evaluation", "share", "cut off by the step limit in the last evaluation"),
    Metric("boss_health_left/<fights>", "share", "mean at the end of evaluated fights: all, or those ended in a phase"),
    Metric(
        "win_rate/against/<boss>",
        "share",
        "with several bosses: won against this one in the last evaluation; `win_rate/evaluation` is the lowest of them",
    ),
    Metric("return/training", "", "mean undiscounted sum of rewards of the training episodes that ended last"),
    Metric("return/evaluation", "", "mean undiscounted sum of rewards of the last evaluation"),
    Metric("episode/length", "steps", "mean length of the training episodes that ended last"),
    Metric("episode/length_evaluation", "steps", "mean length of the episodes of the last evaluation"),
    Metric("episode/time_s", "s", "mean game time of the training episodes that ended last"),
    Metric("episodes", "episodes", "training episodes that ended", "counter"),
    Metric("wins", "episodes", "training fights won among those with the standard start", "counter"),
    Metric("time_outs", "episodes", "training fights with the standard start that the step limit cut off", "counter"),
    Metric("reward/<term>", "", "mean sum over a training episode of this term of the reward, already weighted"),
    Metric("loss/policy", "", "loss of the policy"),
    Metric("loss/value", "", "loss of the value head, before its weight"),
    Metric("loss/q", "", "mean loss of the action values of a batch, importance weights applied"),
    Metric("policy/entropy", "nat", "mean entropy of the policy over open actions"),
    Metric("policy/kl", "nat", "approximate divergence of the learned policy from the one that acted"),
    Metric("value/mean", "", "mean value of the states of an update, as the value head saw them"),
    Metric("q/mean", "", "mean value of the actions taken in a batch"),
    Metric("q/max", "", "largest value of the actions taken in a batch"),
    Metric("beta", "", "exponent of the importance weights of prioritised replay"),
    Metric("gradient/norm", "", "norm of the gradient before clipping"),
    Metric("learning_rate", "", "of the optimizer, now"),
    Metric("updates", "updates", "gradient steps", "counter"),
    Metric("updates_refused", "updates", "gradient steps skipped because they were not finite", "counter"),
    Metric("steps_per_s", "1/s", "environment steps a second since the last row"),
    Metric("updates_per_s", "1/s", "gradient steps a second since the last row"),
    Metric("game_hours", "h", "game time played in training, all fights together", "counter"),
    Metric("replay/size", "transitions", "transitions in the replay"),
    Metric("replay/priority_mean", "", "prioritised replay: mean priority of the transitions in it"),
    Metric("replay/priority_max", "", "prioritised replay: largest priority of the transitions in it"),
    Metric("fleet/workers", "workers", "live workers"),
    Metric("fleet/version", "versions", "policies published", "counter"),
    Metric("fleet/lag", "versions", "mean age of the policy that chunks used since the last look were played with"),
    Metric("fleet/age_s", "s", "mean time between sending and receiving of the chunks that came since the last look"),
    Metric("fleet/oldest_s", "s", "the longest of these times"),
    Metric("fleet/sent", "rows", "transitions, or decisions of rollouts, that workers have sent", "counter"),
    Metric("fleet/stored", "rows", "of them, those that a checkpoint holds or an update has used", "counter"),
    Metric("fleet/in_flight", "rows", "of them, those that are on their way, or stored but in no checkpoint yet"),
    Metric("fleet/dropped/<reason>", "rows", "of them, those that were dropped, by reason", "counter"),
    Metric(
        "fleet/updates_skipped",
        "updates",
        "gradient steps skipped because experience came faster than it could be learned from",
        "counter",
    ),
    Metric("fleet/checked", "fights", "fights of workers that were replayed and matched", "counter"),
    Metric("fleet/newcomers", "names", "names on probation: too few of their fights have been replayed so far"),
    Metric("fleet/ended", "names", "names revoked because their experience did not match a replay", "counter"),
    Metric("time/<phase>", "share", "of the loop's time since the last row that went into this phase"),
)

_OF_RUNS = (
    Metric("run/state/<state>", "", "1 for the state that the run is in"),
    Metric("run/steps", "steps", "environment steps so far", "counter"),
    Metric("run/steps_wanted", "steps", "environment steps after which it is finished"),
    Metric("run/row_age_s", "s", "time since the last row of metrics"),
    Metric("run/unreadable/<name>", "messages", "messages of a worker's name that could not be read", "counter"),
    Metric(
        "run/refused/<name>",
        "",
        "what was refused of a name: messages beyond its quota or with a false time, false heartbeats, keys of a wrong "
        "type, forbidden commands",
        "counter",
    ),
    Metric("gateway/connections", "connections", "connections that its gateway has open"),
    Metric("gateway/accepted", "connections", "connections that its gateway has let in", "counter"),
    Metric("gateway/bytes", "bytes", "bytes that came through its gateway", "counter"),
    Metric("gateway/passed", "messages", "messages of experience that its gateway has passed on", "counter"),
    Metric("gateway/dropped/<reason>", "messages", "messages that its gateway has dropped, by reason", "counter"),
    Metric("gateway/refused/<reason>", "connections", "connections that its gateway has refused, by reason", "counter"),
    Metric("worker/state/<state>", "", "1 for the state that the worker is in", labels=("worker",)),
    Metric("worker/steps_per_s", "1/s", "environment steps a second that come from it", labels=("worker",)),
    Metric("worker/lag", "versions", "how far its policy is behind the newest", labels=("worker",)),
    Metric("worker/beat_age_s", "s", "time since its last heartbeat", labels=("worker",)),
    Metric("worker/restarts", "restarts", "times its world was started again", "counter", labels=("worker",)),
    Metric("worker/episodes", "episodes", "episodes that ended in what is stored of it", "counter", labels=("worker",)),
    Metric("worker/sent", "rows", "transitions, or decisions of rollouts, that it has sent", "counter", ("worker",)),
    Metric("worker/stored", "rows", "of them, those that are stored", "counter", ("worker",)),
    Metric("worker/in_flight", "rows", "of them, those that are on their way", labels=("worker",)),
    Metric("worker/dropped/<reason>", "rows", "of them, those that were dropped, by reason", "counter", ("worker",)),
)

_DECLARED: tuple[Metric, ...] = (*_COMMON, *(metric for own in algorithm_modules("metrics") for metric in own.METRICS))

METRICS = {metric.name: metric for metric in _DECLARED}
"""All metrics by name; families by the name with <...>."""

RUN_METRICS = {metric.name: metric for metric in _OF_RUNS}
"""Further metrics of a run and its workers, for Prometheus only."""


@lru_cache(maxsize=4096)
def metric(name: str) -> Metric:
    """The declaration behind a name; MisuseError if there is none."""
    if name in METRICS and not METRICS[name].prefix:
        return METRICS[name]
    for family in _DECLARED:
        if family.prefix and name.startswith(family.prefix) and name != family.prefix and "<" not in name:
            return family
    otherwise = "declare it in telemetry/metrics.py, or in metrics.py of its algorithm"
    raise MisuseError(f"metric {name!r} is not declared; {way_out(name, METRICS, otherwise=otherwise)}")


def reference() -> str:
    """The documentation page, in Markdown."""
    return "\n".join([_HEAD, *map(_line, _DECLARED), _HEAD_OF_RUNS, *map(_line, _OF_RUNS), ""])


def _line(each: Metric) -> str:
    labels = ", ".join(each.prometheus_labels[1:])
    name = f"{each.prometheus}{{{labels}}}" if labels else each.prometheus
    return f"| `{each.name}` | {each.unit} | {each.kind} | {each.text} | `{name}` |"


_HEAD = """# Metrics

Made from the declarations in `soulsai/telemetry/metrics.py` and those of the algorithms. Every row has `step`
(environment steps so far), `time` (UTC), `elapsed_s` (seconds of training, over all resumes) and those of the metrics
below that were known then; TensorBoard shows the same names. A gauge is a current value, a counter a total since the
start of the run. A value that is not finite is NULL in `metrics.sqlite` and `null` in `metrics.jsonl`.

The last column is the name for Prometheus, which has a label `run` everywhere and shows each family as one metric with
a label. It wants base units: shares are ratios, hours become seconds.

| metric | unit | kind | meaning | for Prometheus |
|---|---|---|---|---|"""

_HEAD_OF_RUNS = """
## Of a run and its workers

Only for Prometheus: what the folder of a run and its fleet say of themselves at the moment of asking. Workers that have
left, or are silent for an hour, are not shown one by one any more.

| metric | unit | kind | meaning | for Prometheus |
|---|---|---|---|---|"""
