"""Tables of an evaluation in HTML. Every text that goes in is escaped here and nowhere else."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from soulsai.evaluation.evaluation import AttackCount, Breakdown, DrawnFile, Evaluation, Groups, Quartiles
from soulsai.runs.fight_files import short_name

Cell = str | float | int | None


def text(value: object) -> str:
    """Anything as text that cannot be mistaken for HTML."""
    return html.escape(str(value), quote=True)


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table; the first column holds names, the others numbers."""
    head = "".join(f"<th>{text(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: Cell) -> str:
    if isinstance(value, Bar):
        return value.html()
    shown = "-" if value is None else f"{value:,}" if isinstance(value, int) else text(value)
    return f"<td>{shown}</td>"


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
        "in the game" if settings.engine == "game" else "",
    ]
    who = f"{short_name(settings.boss)} ({short_name(settings.variant)})"
    return ", ".join([who, where, *filter(None, extras)])


def overview(evaluations: Sequence[Evaluation]) -> str:
    """All evaluations in a line each."""
    heads = ("fights", "seed", "number", "wins", "95 % interval", "time-outs", "median time to kill")
    return table(heads, (_overview_row(each) for each in evaluations))


def _overview_row(evaluation: Evaluation) -> Sequence[Cell]:
    low, high = evaluation.interval
    return (
        kind_of(evaluation),
        str(evaluation.settings.seed),
        evaluation.fights,
        Bar(evaluation.win_rate),
        f"{100 * low:.1f}-{100 * high:.1f}",
        percent(evaluation.time_outs / evaluation.fights),
        f"{evaluation.time_to_kill_s.median:.1f} s" if evaluation.time_to_kill_s else None,
    )


def drawn_files(evaluation: Evaluation) -> str:
    """Drawn file by drawn file, the worst first."""
    heads = ("drawn from seed", "wins", "95 % interval", "median time to kill", "most common cause of death", "times")
    return table(heads, (_drawn_row(each) for each in sorted(evaluation.drawn_files, key=lambda file: file.win_rate)))


def _drawn_row(file: DrawnFile) -> Sequence[Cell]:
    low, high = file.interval
    return (
        str(file.seed),
        Bar(file.win_rate),
        f"{100 * low:.1f}-{100 * high:.1f}",
        None if file.time_to_kill_s is None else f"{file.time_to_kill_s:.1f} s",
        label(file.killed_by) or None,
        file.deaths,
    )


def endings(evaluation: Evaluation) -> str:
    """Phase by phase how the fights ended."""
    heads = ("phase", "reached", "won in it", "died in it", "fell", "time-outs", "lost, of those who reached it")
    rows = (
        (
            str(each.phase),
            each.reached,
            each.won,
            each.died,
            each.fell,
            each.time_outs,
            Bar((each.died + each.fell + each.time_outs) / each.reached) if each.reached else None,
        )
        for each in evaluation.phases
    )
    return table(heads, rows)


def lengths(evaluation: Evaluation) -> str:
    """Times and health: a quarter of the fights, half, three quarters."""
    rows = (
        ("time to kill, won fights", *_spread(evaluation.time_to_kill_s, 1.0, "s")),
        ("player's health left, won fights", *_spread(evaluation.hp_left, 100.0, "%")),
        ("boss's health left, lost fights", *_spread(evaluation.boss_hp_left, 100.0, "%")),
    )
    return table(("", "a quarter below", "median", "a quarter above"), rows)


def _spread(quartiles: Quartiles | None, factor: float, unit: str) -> Sequence[Cell]:
    if quartiles is None:
        return (None, None, None)
    return tuple(f"{factor * value:.1f} {unit}" for value in (quartiles.low, quartiles.median, quartiles.high))


def attacks(evaluation: Evaluation) -> str:
    """What every attack did, the most harmful first."""
    heads = ("attack", "deaths", "share of all damage", "dodge rate", "hits", "dodged", "started", "damage")
    return table(heads, (_attack_row(evaluation, each) for each in sorted(evaluation.attacks, key=lambda a: -a.damage)))


def _attack_row(evaluation: Evaluation, attack: AttackCount) -> Sequence[Cell]:
    rate = attack.dodge_rate
    return (
        label(attack.name),
        attack.deaths,
        Bar(evaluation.damage_share(attack)),
        None if rate is None else Bar(rate),
        attack.hits,
        attack.dodged,
        attack.started,
        round(attack.damage),
    )


def label(name: str) -> str:
    """A move's name without underscores."""
    return name.replace("_", " ")


def why(deaths: Breakdown, hits: Breakdown) -> str:
    """Deaths and hits by attack, distance, animation and stamina."""
    kinds = (
        ("attack", deaths.attack, hits.attack),
        ("distance", deaths.distance, hits.distance),
        ("player's animation", deaths.animation, hits.animation),
        ("stamina", deaths.stamina, hits.stamina),
    )
    return "".join(f'<div class="card">{_groups(kind, died, hit)}</div>' for kind, died, hit in kinds)


def _groups(kind: str, deaths: Groups, hits: Groups) -> str:
    all_deaths, all_hits = sum(deaths.values()) or 1, sum(hits.values()) or 1
    rows = (
        (label(name), _counted(deaths.get(name, 0), all_deaths), _counted(hits.get(name, 0), all_hits))
        for name in dict.fromkeys([*deaths, *hits])
    )
    return table((kind, "deaths", "hits"), rows)


def _counted(count: int, total: int) -> Bar:
    return Bar(count / total, f"{count:,} ({100 * count / total:.0f} %)" if count else "0")
