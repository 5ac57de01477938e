"""An evaluation as tables for a terminal of 80 columns."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from soulsai.runs.fight_files import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from soulsai.evaluation.evaluation import AttackCount, Evaluation, EvaluationSettings, Quartiles

LONGEST = 8
"""Rows of a list of causes; the rest is summed up."""


def print_evaluation(evaluation: Evaluation, *, title: str = "", console: Console | None = None) -> None:
    """Print what a user asks of an evaluation: how good, how fast, and why fights are lost."""
    out = console or Console(highlight=False)
    out.print(Text(f"{title} {evaluation.headline}".strip(), style="bold"), soft_wrap=True)
    out.print(Text(settings_text(evaluation.settings)), soft_wrap=True)
    if evaluation.drawn_files:
        out.print(_drawn_files(evaluation))
    out.print(_phases(evaluation))
    out.print(_figures(evaluation))
    if evaluation.attacks:
        out.print(_attacks(evaluation))
    if evaluation.died + evaluation.fell:
        out.print(_deaths(evaluation))


def settings_text(settings: EvaluationSettings) -> str:
    """The fights that were fought, in a line."""
    kind = "full fights" if settings.full and settings.phase == 1 else f"phase {settings.phase}"
    parts = [
        f"{short_name(settings.boss)} {short_name(settings.variant)}",
        kind + (" and on" if settings.full and settings.phase > 1 else ""),
    ]
    parts += [f"randomize {settings.randomize:g}"] if settings.randomize else []
    parts += ["random poses"] if settings.random_pose else []
    parts += ["no hit"] if settings.no_hit else []
    parts += ["in the game"] if settings.engine == "game" else [f"seed {settings.seed}"]
    return ", ".join([*parts, f"at most {settings.step_limit / 10:,.0f} s each, greedy"])


def share_text(share: float | None) -> str:
    """A share in per cent; a dash for none."""
    return "-" if share is None else f"{100 * share:.1f} %"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def _drawn_files(evaluation: Evaluation) -> Table:
    """The files by seed, the worst first."""
    columns = ("drawn from seed", "wins", "95 %\ninterval", "median\ntime to kill", "most common\ncause of death")
    table = _table("File by file", *columns)
    for file in sorted(evaluation.drawn_files, key=lambda file: file.win_rate):
        low, high = file.interval
        time = "-" if file.time_to_kill_s is None else f"{file.time_to_kill_s:.1f} s"
        cause = f"{file.killed_by} ({file.deaths:,})" if file.killed_by else "-"
        interval = f"{100 * low:.0f}-{100 * high:.0f}"
        table.add_row(str(file.seed), share_text(file.win_rate), interval, time, cause)
    return table


def _phases(evaluation: Evaluation) -> Table:
    table = _table("How the fights ended", "phase", "reached", "won", "died", "fell", "time-outs")
    for phase in evaluation.phases:
        counts = (phase.reached, phase.won, phase.died, phase.fell, phase.time_outs)
        table.add_row(str(phase.phase), *(f"{count:,}" for count in counts))
    return table


def _figures(evaluation: Evaluation) -> Table:
    table = _table("Of the fights", "", "quarter below", "half below", "three quarters below")
    rows: tuple[tuple[str, Quartiles | None, float, str], ...] = (
        ("won: time to kill", evaluation.time_to_kill_s, 1.0, "s"),
        ("won: player health left", evaluation.hp_left, 100.0, "%"),
        ("lost: boss health left", evaluation.boss_hp_left, 100.0, "%"),
    )
    for name, found, scale, unit in rows:
        values = ("-",) * 3 if found is None else (found.low, found.median, found.high)
        table.add_row(name, *(v if isinstance(v, str) else f"{scale * v:.1f} {unit}" for v in values))
    return table


def _attacks(evaluation: Evaluation) -> Table:
    columns = ("attack", "seen", "hits", "dodge\nrate", "damage\nper fight", "share", "deaths")
    table = _table("What the boss's attacks did", *columns)
    for attack in sorted(evaluation.attacks, key=lambda attack: -attack.damage):
        table.add_row(*_attack_row(evaluation, attack))
    return table


def _attack_row(evaluation: Evaluation, attack: AttackCount) -> tuple[str, ...]:
    return (
        attack.name,
        f"{attack.started:,}",
        f"{attack.hits:,}",
        share_text(attack.dodge_rate),
        f"{attack.damage / evaluation.fights:,.1f}",
        share_text(evaluation.damage_share(attack)),
        f"{attack.deaths:,}",
    )


def _deaths(evaluation: Evaluation) -> Table:
    """Three lists side by side: by attack, by distance and by what the player was doing a step before."""
    deaths = evaluation.deaths
    table = _table("Why do I die", "attack", "", "distance", "", "doing", "")
    for column in table.columns[2::2]:
        column.justify = "left"
    lists = [_most(counts) for counts in (deaths.attack, deaths.distance, deaths.animation)]
    for row in zip_longest(*lists, fillvalue=("", "")):
        table.add_row(*(cell for pair in row for cell in pair))
    return table


def _most(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    found = [(name, count) for name, count in counts.items() if count]
    rest = sum(count for _, count in found[LONGEST:])
    shown = found[:LONGEST] + ([("others", rest)] if rest else [])
    return [(name, f"{count:,}") for name, count in shown]
