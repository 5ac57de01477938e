"""Why a player died, and the smallest change that would have saved him.

A recorded fight of the simulator is played again up to two seconds before the death. From there thousands of small
changes of what was pressed are tried side by side: leaving a press out, another one in its place, the same one a little
earlier or later, a short walk. The smallest one with which the player lives on is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache

import numpy as np
import numpy.typing as npt

from soulsai.evaluation.evaluation import FALL
from soulsgym.actions import ACTION_CONTROLS, NOTHING, Button, controls_of
from soulsgym.batch import seed_number
from soulsgym.engine import Snapshot
from soulsgym.envs.simulated import FightSettings, simulated_batch
from soulsgym.errors import MisuseError, RecordingError
from soulsgym.recordings.exact import other_data, play_ticks, recorded_spec
from soulsgym.recordings.recording import Recording
from soulsgym.render.history import FALL_MOVE, ROLL_MOVE
from soulsgym.render.names import control_name, plain_name
from soulsgym.sim.engine import KIND, SimEngine
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import FightSpec
from soulsgym.state import FIGHT, NUM_ACTIONS, Outcome, copied

WINDOW, AFTER = 20, 10
"""Steps before the death in which something may change, and steps that the player must live on after it."""
STEP_S = 0.1
MOST_SHIFT, WALKS = 5, (3, 5, 8)
"""Steps that a press may come earlier or later, and that a walk takes."""
MOST_AT_ONCE, MOST_DEATHS, MOST_CAUSES = 40_000, 64, 8
SHOWN = 50
"""Steps before the death that both fights are shown from."""
FIRST_ROLL, FIRST_ATTACK = 8, 16
LEFT_OUT_COST, TURNED_COST, OTHER_COST, ATTACK_COST, WALK_COST, SHIFT_COST = 1.0, 1.2, 2.0, 3.0, 2.0, 0.5
PER_SHIFT_COST, PER_WALK_COST, PER_STEP_COST, SAFE_GAIN = 0.25, 0.2, 0.03, 0.6
"""How large a change is; less if a tenth of a second earlier or later it saves the player too."""

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Kind(IntEnum):
    """What is changed."""

    OTHER = 0  # another press, or none
    SHIFT = 1  # the same press earlier or later
    WALK = 2  # a walk instead


@dataclass(frozen=True)
class Change:
    """A change that saves the player, in words, and what is pressed from the beginning of the window on."""

    text: str
    actions: Ints


@dataclass(frozen=True)
class Death:
    """A death: of what, what the player was doing, and what would have saved him, if anything."""

    fight: int  # of the recordings, counted from 1
    time_s: float
    killer: str
    cause: str  # such as "attacking into beast tail"
    change: Change | None
    survives: bool  # was the fight with the change played again from its seed, and did he live on?
    before: Recording  # the last seconds as they were
    after: Recording | None  # and with the change


@dataclass(frozen=True)
class _Changes:
    """All changes there are, whether they make sense or not: one row each."""

    kind: Ints
    at: Ints
    action: Ints
    by: Ints  # steps later, or of a walk its length


def autopsy(recordings: Sequence[Recording]) -> list[Death]:
    """Every death in recordings of the simulator; RecordingError where one cannot be played again."""
    for recording in recordings:
        check_repeatable(recording)
    fights = [recording.part(number) for recording in recordings for number in range(len(recording.bounds()))]
    died = [i for i, one in enumerate(fights) if one.fights["outcome"][-1] in (Outcome.DIED, Outcome.FELL)]
    groups: dict[object, list[int]] = {}
    for i in died:
        made = fights[i].simulation
        groups.setdefault((made and made.settings, fights[i].controls is None), []).append(i)
    parts = [group[low : low + MOST_DEATHS] for group in groups.values() for low in range(0, len(group), MOST_DEATHS)]
    deaths = [death for part in parts for death in _examine([fights[i] for i in part], [i + 1 for i in part])]
    return sorted(deaths, key=lambda death: death.fight)


def check_repeatable(recording: Recording) -> None:
    """Refuse a recording that the simulator cannot play again."""
    if recording.simulation is None:
        raise RecordingError(
            f"{recording.source}: holds no seeds, so it cannot be played again; give a recording of the simulator, "
            "such as souls record or souls play writes"
        )
    if recording.simulation.settings.skip_steps:
        raise RecordingError(f"{recording.source}: was recorded with skip_steps; record it again without")
    if told := other_data(recording):
        raise RecordingError(f"{recording.source}: {told[0].lower()}{told[1:]}")


def _examine(fights: list[Recording], numbers: list[int]) -> list[Death]:
    assert fights[0].simulation is not None
    spec, settings = recorded_spec(fights[0]), fights[0].simulation.settings
    assert spec is not None
    window = _Window(fights, settings, spec)
    changes = _all_changes()
    lives = window.try_all(changes)
    best = _smallest(window, changes, lives)
    texts = [_words(window, spec, changes, d, best[d]) if best[d] >= 0 else "" for d in range(len(fights))]
    rows = window.rows(changes, np.arange(len(fights)), np.maximum(best, 0))
    again = _play_again(window, settings, rows, best >= 0)
    return [
        _death(one, number, spec, Change(text, rows[d]) if text else None, records)
        for d, (one, number, text, records) in enumerate(zip(fights, numbers, texts, again, strict=True))
    ]


class _Window:
    """The last two seconds before the fatal blow of fights, from which changes are tried."""

    def __init__(self, fights: list[Recording], settings: FightSettings, spec: FightSpec) -> None:
        self.fights, self._settings, self._spec = fights, settings, spec
        self.blows = np.array([_fatal_record(one, spec) for one in fights])
        self.lengths = np.minimum(WINDOW, self.blows)
        # A throw or a fall kills later than it is decided.
        self.until = self.lengths + np.array([len(one) - 1 for one in fights]) - self.blows + AFTER
        self.base = np.full((len(fights), int(self.until.max())), NOTHING)
        self.open = np.zeros((len(fights), WINDOW, NUM_ACTIONS), np.bool_)
        for d, (one, length, blow) in enumerate(zip(fights, self.lengths, self.blows, strict=True)):
            self.base[d, :length] = one.actions[blow - length + 1 : blow + 1]
            self.open[d, :length] = one.fights["action_mask"][blow - length : blow]
        self.ticks = None if fights[0].controls is None else self._recorded_ticks()
        steps = np.arange(WINDOW)
        pressed = self.base[:, :WINDOW]
        self.effective = self.open[np.arange(len(fights))[:, None], steps, pressed] & (pressed != NOTHING)
        self._start = self._states()

    def _recorded_ticks(self) -> npt.NDArray[np.int8]:
        ticks = _ticks_of(self.base)
        for d, (one, length, blow) in enumerate(zip(self.fights, self.lengths, self.blows, strict=True)):
            assert one.controls is not None
            ticks[d, :length] = one.controls[blow - length + 1 : blow + 1]
        return ticks

    def _states(self) -> Snapshot:
        """Where all fights stood at the beginning of the window; each is played up to there from its seed."""
        engine = _engine_of(self.fights, self._settings)
        starts = self.blows - self.lengths
        fights, hidden = copied(engine.fights), engine.hidden.copy()
        for step in range(int(starts.max()) + 1):
            if step:
                _step(engine, self.fights, step)
            here = starts == step
            fights[here], hidden[here] = engine.fights[here], engine.hidden[here]
        for one, start, fight in zip(self.fights, starts, fights, strict=True):
            if any(not np.array_equal(one.fights[name][start], fight[name]) for name in FIGHT.names or ()):
                raise RecordingError(
                    f"{one.source}: is not what the simulator plays today; record it again with this version"
                )
        return Snapshot(KIND, fights, hidden)

    def try_all(self, changes: _Changes) -> Flags:
        """By death and change: does the player live on with it? False for changes that make no sense."""
        lives = np.zeros((len(self.fights), len(changes.kind)), np.bool_)
        which = np.argwhere(self.possible(changes))
        for low in range(0, len(which), MOST_AT_ONCE):
            deaths, rows = which[low : low + MOST_AT_ONCE].T
            lives[deaths, rows] = self._play(deaths, self.rows(changes, deaths, rows))
        return lives

    def possible(self, changes: _Changes) -> Flags:
        """By death and change: would it press something else, and something that is open?"""
        at, by, action = changes.at, changes.by, changes.action
        inside = at[None] < self.lengths[:, None]
        pressed, effective = self.base[:, at], self.effective[:, at]
        # To leave out a tenth of a second of a walk would be luck.
        left_out = effective & (pressed >= FIRST_ROLL)
        other = self.open[:, at, action] & (pressed != action) & ((action != NOTHING) | left_out)
        target = np.clip(at + by, 0, WINDOW - 1)
        everyone = np.arange(len(self.fights))[:, None]
        moved = effective & (pressed >= FIRST_ROLL) & (at + by >= 0) & (at + by < WINDOW)
        moved &= (by > 0) | self.open[everyone, target, pressed]
        possible = np.choose(changes.kind, [other, moved, self.open[:, at, action]])
        return np.asarray(inside & possible.astype(np.bool_))

    def rows(self, changes: _Changes, deaths: Ints, rows: Ints) -> Ints:
        """What is pressed in every step of the window with a change, for pairs of deaths and changes."""
        made, step = self.base[deaths], np.arange(self.base.shape[1])
        kind, at, by, action = (part[rows][:, None] for part in (changes.kind, changes.at, changes.by, changes.action))
        pressed = np.take_along_axis(made, at, axis=1)
        made = np.where((kind == Kind.OTHER) & (step == at), action, made)
        made = np.where((kind == Kind.WALK) & (step >= at) & (step < at + by), action, made)
        made = np.where((kind == Kind.SHIFT) & (step == at), NOTHING, made)
        return np.where((kind == Kind.SHIFT) & (step == at + by), pressed, made)

    def with_ticks(self, deaths: Ints, actions: Ints) -> npt.NDArray[np.int8] | None:
        """The actions as ticks where a person played: the recorded ones wherever nothing changes."""
        if self.ticks is None:
            return None
        same = self.base[deaths] == actions
        return np.where(same[..., None, None], self.ticks[deaths], _ticks_of(actions))

    def _play(self, deaths: Ints, actions: Ints) -> Flags:
        settings, until = self._settings, self.until[deaths]
        engine = SimEngine(self._spec, len(deaths), phase=settings.phase, changes=settings.changes)
        engine.restore(Snapshot(KIND, self._start.fights[deaths], self._start.hidden[deaths]))
        ticks, lives = self.with_ticks(deaths, actions), np.zeros(len(deaths), np.bool_)
        for step in range(actions.shape[1]):
            if ticks is None:
                engine.step(controls_of(actions[:, step]))
            else:
                play_ticks(engine, ticks[:, step])
            now = until == step + 1
            lives[now] = is_alive(engine.fights["outcome"][now])
        engine.close()
        return lives


def is_alive(outcomes: npt.NDArray[np.int32]) -> Flags:
    """Whether the player has not died."""
    return np.isin(outcomes, (Outcome.RUNNING, Outcome.WON))


def _fatal_record(one: Recording, spec: FightSpec) -> int:
    """The record of the blow that decided: that of the death, or where a throw or a fall that led to it began."""
    kinds = [move.kind for move in spec.player.moves]
    held = [i for i, kind in enumerate(kinds) if kind == "grabbed"]
    lost = np.isin(one.fights["player_move"], [*held, FALL_MOVE])
    if not lost[-1]:
        return len(one) - 1
    free = np.flatnonzero(~lost)
    return max(1, int(free[-1]) + 1 if len(free) else 0)


@cache
def _all_changes() -> _Changes:
    """Every change: another press at every step, every press moved, a walk in every direction."""
    at = np.arange(WINDOW)
    shifts = np.array([by for by in range(-MOST_SHIFT, MOST_SHIFT + 1) if by])
    groups = [
        np.meshgrid([Kind.OTHER], at, np.arange(FIRST_ROLL, NUM_ACTIONS), [0], indexing="ij"),
        np.meshgrid([Kind.SHIFT], at, [NOTHING], shifts, indexing="ij"),
        np.meshgrid([Kind.WALK], at, np.arange(FIRST_ROLL), WALKS, indexing="ij"),
    ]
    kind, steps, action, by = (
        np.concatenate([group[i].reshape(-1) for group in groups]).astype(np.int64) for i in range(4)
    )
    return _Changes(kind, steps, action, by)


def _smallest(window: _Window, changes: _Changes, lives: Flags) -> Ints:
    """By death the smallest change that saves the player; -1 if none does."""
    kind, at, by, action = changes.kind, changes.at, changes.by, changes.action
    pressed, effective = window.base[:, at], window.effective[:, at]
    turned = effective & (pressed >= FIRST_ROLL) & (pressed < FIRST_ATTACK) & (action >= FIRST_ROLL)
    other = np.where(turned & (action < FIRST_ATTACK), TURNED_COST, OTHER_COST)
    other = np.where(action >= FIRST_ATTACK, ATTACK_COST, other)
    other = np.where(action == NOTHING, LEFT_OUT_COST, other)
    moved = np.broadcast_to(SHIFT_COST + PER_SHIFT_COST * np.abs(by), other.shape)
    walked = np.broadcast_to(WALK_COST + PER_WALK_COST * by, other.shape)
    cost = np.choose(kind, [other, moved, walked])
    cost = cost + PER_STEP_COST * (window.lengths[:, None] - 1 - at) - SAFE_GAIN * _safety(changes, lives)
    best = np.where(lives, cost, np.inf).argmin(axis=1)
    return np.where(lives.any(axis=1), best, -1)


def _safety(changes: _Changes, lives: Flags) -> npt.NDArray[np.float64]:
    """The share of both neighbours of a change, a step earlier and a step later, that save the player too."""
    return sum(np.where(near >= 0, lives[:, near], False) / 2.0 for near in _neighbours())  # type: ignore[return-value]


@cache
def _neighbours() -> list[Ints]:
    """By change the rows of those a step earlier and a step later; -1 where there is none."""
    rows = {key: row for row, key in enumerate(zip(*vars(_all_changes()).values(), strict=True))}
    moved = [
        [
            rows.get((kind, at, action, by + shift) if kind == Kind.SHIFT else (kind, at + shift, action, by), -1)
            for kind, at, action, by in rows
        ]
        for shift in (-1, 1)
    ]
    return [np.array(each) for each in moved]


def _ticks_of(actions: Ints) -> npt.NDArray[np.int8]:
    """Actions as a person would press them: the direction held for the step, the button in its first tick."""
    ticks = np.repeat(ACTION_CONTROLS[actions].copy().view(np.int8).reshape(*actions.shape, 1, 2), TICKS_PER_STEP, -2)
    ticks[..., 1:, 1] = Button.NONE
    return ticks


# ---------------------------------------------------------------- playing again


def _engine_of(fights: list[Recording], settings: FightSettings) -> SimEngine:
    """All fights at their beginnings."""
    try:
        batch = simulated_batch(settings, len(fights))
    except MisuseError as error:
        raise RecordingError(f"{fights[0].source}: cannot be repeated: {error}") from error
    seeds = [seed for one in fights if one.simulation for seed in one.simulation.seeds]
    batch.begin(seeds=np.array([seed_number(seed) for seed in seeds]))
    assert isinstance(batch.engine, SimEngine)
    return batch.engine


def _step(engine: SimEngine, fights: list[Recording], step: int) -> None:
    """Step `step` of all recorded fights; nothing is pressed in those that are over."""
    if fights[0].controls is None:
        engine.step(
            controls_of(np.array([one.actions[step] if step < len(one.actions) else NOTHING for one in fights]))
        )
        return
    idle = _ticks_of(np.array([NOTHING]))[0]
    ticks = [idle if one.controls is None or step >= len(one.controls) else one.controls[step] for one in fights]
    play_ticks(engine, np.stack(ticks))


def _play_again(window: _Window, settings: FightSettings, rows: Ints, changed: Flags) -> Iterator[Recording | None]:
    """The last seconds of the fights with their changes, played from their seeds; None where nothing was changed."""
    altered = [_replace_actions(window, d, row) for d, row in enumerate(rows)]
    engine = _engine_of(window.fights, settings)
    records = [copied(engine.fights)]
    for step in range(1, max(len(one.actions) for one in altered)):
        _step(engine, altered, step)
        records.append(copied(engine.fights))
    for d, (one, made) in enumerate(zip(window.fights, altered, strict=True)):
        if not changed[d]:
            yield None
            continue
        low = max(0, len(one) - SHOWN)
        own = np.concatenate([record[d : d + 1] for record in records[low : len(made.actions)]])
        ended = np.flatnonzero(own["outcome"] != Outcome.RUNNING)
        high = int(ended[0]) + 1 if len(ended) else len(own)
        yield Recording(own[:high], made.actions[low : low + high], np.zeros(high, np.int64), one.source)


def _replace_actions(window: _Window, death: int, row: Ints) -> Recording:
    """The whole fight with other actions from the beginning of its window on; its records are still the old ones."""
    one, kept, until = window.fights[death], window.blows[death] - window.lengths[death] + 1, window.until[death]
    ticks = window.with_ticks(np.array([death]), row[None])
    controls = None
    if ticks is not None and one.controls is not None:
        controls = np.concatenate([one.controls[:kept], ticks[0, :until]])
    return replace(one, actions=np.concatenate([one.actions[:kept], row[:until]]), controls=controls)


def _death(one: Recording, number: int, spec: FightSpec, change: Change | None, after: Recording | None) -> Death:
    low, last = max(0, len(one) - SHOWN), one.fights[-1]
    before = Recording(one.fights[low:], one.actions[low:], np.zeros(len(one) - low, np.int64), one.source)
    survives = after is not None and bool(is_alive(after.fights["outcome"][-1:])[0])
    killer = killer_of(last, spec)
    return Death(number, float(last["time_s"]), killer, cause_of(one, spec), change, survives, before, after)


# ---------------------------------------------------------------- words


def killer_of(last: np.void, spec: FightSpec) -> str:
    """What the player died of, by the last record."""
    move = int(last["killed_by"])
    return plain_name(spec.boss.moves[move].name) if 0 <= move < len(spec.boss.moves) else FALL


def _grab_of(last: np.void, spec: FightSpec) -> str:
    """The grab that led to the throw that killed."""
    throw = spec.boss.moves[int(last["killed_by"])].name
    return plain_name(next((move.name for move in spec.boss.moves if move.grab_move == throw), throw))


def cause_of(one: Recording, spec: FightSpec) -> str:
    """What the player was doing when he died, and of what, such as "attacking into beast tail"."""
    blow = _fatal_record(one, spec)
    last, fight = one.fights[-1], one.fights[blow - 1]
    if last["outcome"] == Outcome.FELL:
        return "falling off the cliff"
    if blow < len(one) - 1:
        return f"being caught by {_grab_of(last, spec)}"
    killer, move = killer_of(last, spec), int(fight["player_move"])
    kind = spec.player.moves[move].kind if move >= 0 else ""
    if kind in ("attack", "riposte"):
        return f"attacking into {killer}"
    if move == ROLL_MOVE or kind == "roll":
        safe_until_s = spec.player.roll.invulnerable_s[1] if move == ROLL_MOVE else 0.0
        late = fight["player_move_s"] >= safe_until_s - spec.player.label_s_per_step
        return f"rolling too early for {killer}" if late else f"rolling too late for {killer}"
    if kind in ("reaction", "grabbed"):
        return f"{killer} while still down from the blow before"
    if kind == "parry":
        return f"missing the parry of {killer}"
    if fight["player_sp"][0] <= 0:
        return f"out of stamina before {killer}"
    return f"walking into {killer}" if ACTION_CONTROLS[one.actions[-1]]["direction"] >= 0 else f"standing in {killer}"


def _words(window: _Window, spec: FightSpec, changes: _Changes, death: int, row: int) -> str:
    """A change as a player would say it."""
    at, by = int(changes.at[row]), int(changes.by[row])
    was, action = int(window.base[death, at]), int(changes.action[row])
    before_s = f"{max(1, int(window.lengths[death]) - at) * STEP_S:.1f} s before the blow"
    kind = changes.kind[row]
    if kind == Kind.SHIFT:
        return f"{_name(was)} {abs(by) * STEP_S:.1f} s {'later' if by > 0 else 'earlier'}"
    if kind == Kind.WALK:
        return f"{_name(action)} for {by * STEP_S:.1f} s, {before_s}"
    if action == NOTHING:
        doing = "attack" if was >= FIRST_ATTACK and was != NOTHING - 1 else _name(was)
        return f"do not {doing} {_boss_activity(window, spec, death, at)}, {before_s}"
    if window.effective[death, at]:
        return f"{_name(action)} instead of {_name(was)}, {before_s}"
    return f"{_name(action)} {before_s}"


def _name(action: int) -> str:
    return control_name(ACTION_CONTROLS[action])


def _boss_activity(window: _Window, spec: FightSpec, death: int, at: int) -> str:
    """What the boss does when a press is left out: "into the chop", "after the sweep" or "during his walk"."""
    one, here = window.fights[death], int(window.blows[death] - window.lengths[death]) + at
    move = int(one.fights["boss_move"][here])
    if not 0 <= move < len(spec.boss.moves):
        return "now"
    row, move_s = spec.boss.moves[move], float(one.fights["boss_move_s"][here])
    if row.kind != "attack":
        return f"during his {plain_name(row.name)}"
    over = all(hit.to_s < move_s for hit in row.hits)
    return f"{'after' if over else 'into'} the {plain_name(row.name)}"


def summary_of(deaths: Sequence[Death], fights: int) -> str:
    """How many deaths there were, and how many of them a change would have saved."""
    changed = [death for death in deaths if death.change is not None]
    survive = sum(death.survives for death in changed)
    counts = f"{len(deaths)} death{'s' * (len(deaths) != 1)} in {fights} fight{'s' * (fights != 1)}"
    return (
        f"{counts}. {len(changed)} had a way out in the last 2 s; played again from the seed with it, "
        f"{survive} of {len(changed)} survive that attack."
    )


def causes_table(deaths: Sequence[Death]) -> list[tuple[str, str, str]]:
    """Rows of share, cause, and the change that saves most often in that cause; the rarer ones are summed up."""
    rows, causes = [], Counter(death.cause for death in deaths).most_common()
    for cause, number in causes[:MOST_CAUSES]:
        words = Counter(_kind_of(death.change) for death in deaths if death.cause == cause)
        rows.append((f"{100 * number / len(deaths):.0f} %", cause, words.most_common(1)[0][0]))
    if rest := sum(number for _, number in causes[MOST_CAUSES:]):
        rows.append((f"{100 * rest / len(deaths):.0f} %", f"{len(causes) - MOST_CAUSES} other causes", ""))
    return rows


def _kind_of(change: Change | None) -> str:
    """A change without its times, to be counted."""
    if change is None:
        return "nothing in the last 2 s"
    return change.text.partition(",")[0].partition(" 0.")[0].partition(" 1.")[0]
