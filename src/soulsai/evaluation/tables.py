"""Tables of an evaluation, for the terminal and in HTML, where every text is escaped here and nowhere else."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from soulsai.evaluation.evaluation import Breakdown, Evaluation, Groups, Quartiles
from soulsai.runs.fight_files import short_name
from soulsgym.render.names import move_name, player_name

Cell = str | float | int | None


def text(value: object) -> str:
    """Anything as text that cannot be mistaken for HTML."""
    return html.escape(str(value), quote=True)


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table; the first column holds names, the others numbers."""
    head = "".join(f"<th>{text(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def cell_text(value: Cell) -> str:
    """A cell as text."""
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _cell(value: Cell) -> str:
    return value.html() if isinstance(value, Bar) else f"<td>{text(cell_text(value))}</td>"


@dataclass(frozen=True)
class Table:
    """A title, heads, and rows of which the first cell is a name."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def html(self) -> str:
        """With its title."""
        return f"<h3>{text(self.title)}</h3>{table(self.heads, self.rows)}"


class Bar(str):
    """A cell with a bar of a share behind its text."""

    share: float

    def __new__(cls, share: float, words: str = "") -> Bar:
        bar = super().__new__(cls, words or percent(share))
        bar.share = share
        return bar

    def html(self) -> str:
        """The cell."""
        width = max(0.0, min(100.0, 100.0 * self.share))
        return f'<td class="bar"><i style="width:{width:.1f}%"></i><span>{text(self)}</span></td>'


def percent(share: float | None) -> str:
    """With one decimal."""
    return "-" if share is None else f"{100 * share:.1f} %"


def kind_of(evaluation: Evaluation) -> str:
    """What kind of fights these were, in words."""
    settings = evaluation.settings
    where = "full fight" if settings.full else f"phase {settings.phase} alone"
    if settings.full and settings.phase > 1:
        where = f"from phase {settings.phase} on"
    extras = [
        f"randomize {settings.randomize:g}" if settings.randomize else "",
        "random poses" if settings.random_pose else "",
        "no hit allowed" if settings.no_hit else "",
        {"game": "in the game", "rehearsal": "in a rehearsal"}.get(settings.engine, ""),
        f"{evaluation.taken_over_by} from phase 2 on" if evaluation.taken_over_by else "",
    ]
    who = f"{short_name(settings.boss)} ({short_name(settings.variant)})"
    return ", ".join([who, where, *filter(None, extras)])


def overview(evaluations: Sequence[Evaluation]) -> str:
    """All evaluations in a line each."""
    heads = ("fights", "when (UTC)", "seed", "number", "wins", "95 % interval", "time-outs", "median time to kill")
    rows = (
        (kind_of(each), date_text(each), str(each.settings.seed), each.fights, Bar(each.win_rate),
         _interval(each.interval), percent(each.time_outs / each.fights),
         _seconds(each.time_to_kill_s.median if each.time_to_kill_s else None))
        for each in evaluations
    )  # fmt: skip
    return table(heads, rows)


def date_text(evaluation: Evaluation) -> str:
    """Day and minute of an evaluation in UTC; old files do not tell."""
    return evaluation.made[:16].replace("T", " ") or "-"


def _interval(bounds: tuple[float, float]) -> str:
    return f"{100 * bounds[0]:.1f}-{100 * bounds[1]:.1f}"


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f} s"


def tables_of(evaluation: Evaluation) -> list[Table]:
    """How the fights went and what the boss's attacks did."""
    found = [_endings(evaluation), _lengths(evaluation)]
    found += [_attacks(evaluation)] if evaluation.attacks else []
    return [_drawn_files(evaluation), *found] if evaluation.drawn_files else found


def _drawn_files(evaluation: Evaluation) -> Table:
    """The files by seed, the worst first."""
    heads = ("drawn from seed", "wins", "95 %\ninterval", "median\ntime to kill", "most common\ncause of death")
    rows = [
        (str(each.seed), Bar(each.win_rate), _interval(each.interval), _seconds(each.time_to_kill_s),
         f"{attack_name(evaluation, each.killed_by)} ({each.deaths:,})" if each.killed_by else None)
        for each in sorted(evaluation.drawn_files, key=lambda file: file.win_rate)
    ]  # fmt: skip
    return Table("File by file", heads, rows)


def _endings(evaluation: Evaluation) -> Table:
    heads = ("phase", "reached", "won", "died", "fell", "time-outs", "lost")
    rows = [
        (str(each.phase), each.reached, each.won, each.died, each.fell, each.time_outs,
         Bar((each.died + each.fell + each.time_outs) / each.reached) if each.reached else None)
        for each in evaluation.phases
    ]  # fmt: skip
    return Table("How the fights ended", heads, rows)


def _lengths(evaluation: Evaluation) -> Table:
    rows = [
        ("won: time to kill", *_quartile_cells(evaluation.time_to_kill_s, 1.0, "s")),
        ("won: player health left", *_quartile_cells(evaluation.hp_left, 100.0, "%")),
        ("lost: boss health left", *_quartile_cells(evaluation.boss_hp_left, 100.0, "%")),
    ]
    return Table("Of the fights", ("", "25th percentile", "median", "75th percentile"), rows)


def _quartile_cells(quartiles: Quartiles | None, factor: float, unit: str) -> Sequence[Cell]:
    if quartiles is None:
        return (None, None, None)
    return tuple(f"{factor * value:.1f} {unit}" for value in (quartiles.low, quartiles.median, quartiles.high))


def _attacks(evaluation: Evaluation) -> Table:
    """The most harmful first."""
    heads = ("attack", "seen", "hits", "dodge\nrate", "damage\nper fight", "share of\ndamage", "deaths")
    rows = [
        (attack_name(evaluation, each.name), each.started or None, each.hits,
         None if each.dodge_rate is None else Bar(each.dodge_rate),
         f"{each.damage / evaluation.fights:,.1f}", Bar(evaluation.damage_share(each)), each.deaths)
        for each in sorted(evaluation.attacks, key=lambda attack: -attack.damage)
    ]  # fmt: skip
    return Table("What the boss's attacks did", heads, rows)


def attack_name(evaluation: Evaluation, attack: str) -> str:
    """An attack as players call it."""
    return move_name(evaluation.settings.boss, attack)


def rename_groups(evaluation: Evaluation, blows: Breakdown) -> Breakdown:
    """The same counts by names that players read; those of the same name are one."""
    boss = evaluation.settings.boss
    return replace(
        blows,
        attack=_rename(blows.attack, lambda name: move_name(boss, name)),
        animation=_rename(blows.animation, lambda name: player_name(name, boss)),
    )


def _rename(groups: Groups, name_of: Callable[[str], str]) -> Groups:
    found: Counter[str] = Counter()
    for name, count in groups.items():
        found[name_of(name)] += count
    return dict(found.most_common())


def why(evaluation: Evaluation) -> str:
    """Deaths and hits by attack, distance, animation and stamina."""
    deaths, hits = rename_groups(evaluation, evaluation.deaths), rename_groups(evaluation, evaluation.hits)
    kinds = (
        ("attack", deaths.attack, hits.attack),
        ("distance", deaths.distance, hits.distance),
        ("what the player was doing", deaths.animation, hits.animation),
        ("stamina", deaths.stamina, hits.stamina),
    )
    return "".join(f'<div class="card">{_groups(kind, died, hit)}</div>' for kind, died, hit in kinds)


def _groups(kind: str, deaths: Groups, hits: Groups) -> str:
    all_deaths, all_hits = sum(deaths.values()) or 1, sum(hits.values()) or 1
    rows = (
        (name, _count_bar(deaths.get(name, 0), all_deaths), _count_bar(hits.get(name, 0), all_hits))
        for name in dict.fromkeys([*deaths, *hits])
    )
    return table((kind, "deaths", "hits"), rows)


def _count_bar(count: int, total: int) -> Bar:
    return Bar(count / total, f"{count:,} ({100 * count / total:.0f} %)" if count else "0")
