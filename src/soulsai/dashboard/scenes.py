"""Scenes: a recorded fight as the browser plays it, the fights of a file in a line each, and one as a page."""

from __future__ import annotations

import base64
import functools
import html
import json
import math
import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from soulsai.dashboard.drawing import Drawing, ground_of
from soulsai.dashboard.library import creation_time
from soulsai.evaluation.evaluation import FALL
from soulsai.evaluation.thoughts import PROBABILITY, FightFile, Thoughts, read_fight_file, spec_of
from soulsai.evaluation.video import OUTCOMES, STEPS_PER_S, write_video
from soulsgym.actions import ACTION_CONTROLS, DIRECTIONS
from soulsgym.errors import MisuseError, RecordingError, SoulsError
from soulsgym.render.areas import Pose
from soulsgym.render.history import FALL_MOVE, History
from soulsgym.render.names import (
    UNKNOWN,
    action_names,
    action_sentences,
    boss_label_names,
    killer_name,
    move_name,
    player_label_names,
    sight_groups,
)
from soulsgym.render.shapes import boss_blows, is_open, is_parrying, player_blows
from soulsgym.spec import FightSpec
from soulsgym.state import NUM_ACTIONS, Fights, Outcome, action_mask_of, copied

FORMAT = 1
"""Version of the scene; the player in the browser refuses others."""
HERE = Pose(0.0, 0.0, 0.0)
"""Blows are drawn as seen by whoever strikes: the browser moves them along with the body."""
INVULNERABLE, ROLLING, PARRYING, FALLING, OPENED, LOCKED = (1 << i for i in range(6))
PROBABILITY_DIGITS, VALUE_DIGITS = 4, 3

VIEWER = Path(__file__).parent / "static" / "viewer"
PARTS = (
    "elements.js", "scene.js", "camera.js", "stones.js", "stage.js", "hud.js", "panels.js", "controls.js", "player.js",
    "shared.js",
)  # fmt: skip
"""In the order in which they need each other: in one file there are no imports."""
IMPORT = re.compile(r"^import\s[^;]*;\s*$", re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function|class|const)\b)", re.MULTILINE)

Scene = dict[str, Any]


class Look(NamedTuple):
    """How a video looks."""

    size: tuple[int, int]
    fps: int


VIDEOS = {".mp4": Look((640, 480), 20), ".gif": Look((480, 360), 10)}
LONG_STEPS = 600
"""Longer fights get one frame per step, since rendering would take minutes otherwise."""
_one_video = threading.Lock()  # it takes a core for some seconds


# ---------------------------------------------------------------- the list


def fight_name(file: Path, number: int) -> str:
    """What a fight of a file is called in addresses."""
    return file.stem if number == 1 else f"{file.stem}~{number}"


def fights_in(file: Path) -> list[dict[str, Any]]:
    """An entry for every fight of a recording, counted from 1; remembered until the file changes."""
    try:
        stat = file.stat()
    except OSError as error:
        raise RecordingError(f"{file}: cannot be read: {error.strerror}; give another recording") from error
    return [dict(entry) for entry in _entries(file, stat.st_mtime_ns, stat.st_size)]


@functools.lru_cache(maxsize=4096)
def _entries(file: Path, _changed_ns: int, _size: int) -> tuple[dict[str, Any], ...]:
    told = read_fight_file(file)
    spec = spec_of(told)
    return tuple(_entry(told, spec, number, low, high) for number, (low, high) in enumerate(told.recording.bounds(), 1))


def fights_of(files: Iterable[Path]) -> dict[str, tuple[dict[str, Any], Path]]:
    """All fights of recordings by name, the newest first, each with its file; unreadable recordings are left out."""
    found: dict[str, tuple[dict[str, Any], Path]] = {}
    for file in files:
        try:
            fights = fights_in(file)
        except (SoulsError, OSError):
            continue
        for fight in fights:
            name = fight_name(file, fight["number"])
            found.setdefault(name, ({"name": name, "file": file.name, **fight}, file))
    return dict(sorted(found.items(), key=lambda item: _age(*item[1]), reverse=True))


def _age(fight: dict[str, Any], file: Path) -> tuple[str, int, str]:
    step = fight["step"] if isinstance(fight["step"], int) else -1
    return creation_time(file, fight["made"]), step, file.name


def _entry(told: FightFile, spec: FightSpec, number: int, low: int, high: int) -> dict[str, Any]:
    last = told.recording.fights[high - 1]
    return {
        "number": number,
        "step": told.about.get("step"),
        "made": str(told.about.get("made", "")),
        "outcome": next((words for outcome, words in OUTCOMES.items() if outcome == last["outcome"]), UNKNOWN),
        "killed_by": _killer(last, spec),
        "time_s": round(float(last["time_s"]), 1),
        "steps": high - low,
        "player_hp_share": _share(last["player_hp"][0], last["player_max_hp"]),
        "boss_hp_share": _share(last["boss_hp"][0], last["boss_max_hp"]),
        "thoughts": told.thoughts is not None,
        "engine": str(told.about.get("engine", UNKNOWN)),
        "draw": _draw(told.about),
    }


def _draw(about: Mapping[str, Any]) -> str:
    """A key shared by fights with the same start and seed, whoever fought them; empty if unknown."""
    keys = ("engine", "boss", "variant", "draw_seed", "full", "seed", "fight")
    known = about.get("engine") == "sim" and "seed" in about and "fight" in about
    return "/".join(str(about.get(key, "")) for key in keys) if known else ""


def _killer(fight: np.void, spec: FightSpec) -> str:
    if fight["outcome"] == Outcome.FELL:
        return move_name(spec.boss_name, FALL)
    return killer_name(spec, int(fight["killed_by"])) if fight["outcome"] == Outcome.DIED else ""


def _share(value: float, most: float) -> float:
    return round(min(max(float(value) / max(float(most), 1.0), 0.0), 1.0), 3)


# ---------------------------------------------------------------- the scene


def scene_of(file: Path, number: int) -> Scene:
    """Fight `number`, counted from 1, of a recording: all that the browser needs to play it, as plain values."""
    return scene_from(read_fight_file(file), fight_name(file, number), number)


def scene_from(told: FightFile, name: str, number: int = 1) -> Scene:
    """The same for fights that are not in a file."""
    bounds = told.recording.bounds()
    if not 1 <= number <= len(bounds):
        raise MisuseError(f"fight {number} is not in {name}, which holds {len(bounds)}; give 1 to {len(bounds)}")
    low, high = bounds[number - 1]
    spec = spec_of(told)
    fights, actions = _remove_unknown_moves(told.recording.fights[low:high], spec), told.recording.actions[low:high]
    return {
        "format": FORMAT,
        "name": name,
        **_entry(told, spec, number, low, high),
        "about": {key: value for key, value in told.about.items() if isinstance(value, (str, int, float, bool))},
        "boss": spec.boss.name,
        "phases": len(spec.boss.phases),
        "radius": [round(100 * spec.player.radius_m), round(100 * spec.boss.radius_m)],
        "arena": ground_of(spec.arena),
        "actions": action_names(),
        "wants": action_sentences(),
        **_course(fights, actions, spec),
        **_drawings(fights, spec),
        "thoughts": _thoughts(told.thoughts and told.thoughts.of(low, high), spec),
        "reason": told.reason,
    }


def _remove_unknown_moves(fights: Fights, spec: FightSpec) -> Fights:
    """The records without moves that this moveset does not have: somebody's file may hold any number."""
    cleaned = copied(np.ascontiguousarray(fights))
    for name, known in (("boss_move", spec.boss.moves), ("player_move", spec.player.moves)):
        cleaned[name][cleaned[name] >= len(known)] = -1
    for name, labels in (("boss_animation", spec.boss_animations), ("player_animation", spec.player_animations)):
        cleaned[name][(cleaned[name] < 0) | (cleaned[name] >= len(labels))] = -1
    cleaned["boss_move"] = np.maximum(cleaned["boss_move"], -1)
    return cleaned


def _course(fights: Fights, actions: npt.NDArray[np.int64], spec: FightSpec) -> dict[str, Any]:
    """What is known of every record, a list each: places in cm, headings in milliradians, times in ms."""
    player_names, phases = player_label_names(spec), np.unique(fights["phase"]).tolist()
    boss_names = {phase: boss_label_names(spec, phase) for phase in phases}
    player_labels, player = _index_names(player_names[label] for label in fights["player_animation"])
    boss_labels, boss = _index_names(
        boss_names[phase][label] for phase, label in zip(fights["phase"], fights["boss_animation"], strict=True)
    )
    moves, move = _moves(fights["boss_move"], spec)
    powers = 1 << np.arange(NUM_ACTIONS)
    return {
        "time_ms": _whole(1000.0 * fights["time_s"]),
        "player": _poses(fights["player_pose"]),
        "boss_pose": _poses(fights["boss_pose"]),
        "player_hp": _tenths(fights["player_hp"][:, 0]),
        "player_max_hp": int(fights["player_max_hp"][0]),
        "player_sp": _tenths(fights["player_sp"][:, 0]),
        "player_max_sp": int(fights["player_max_sp"][0]),
        "boss_hp": _tenths(fights["boss_hp"][:, 0]),
        "boss_max_hp": int(fights["boss_max_hp"][0]),
        "phase": _whole(fights["phase"]),
        "player_labels": player_labels,
        "player_animation": player,
        "player_animation_ms": _whole(1000.0 * fights["player_animation_duration"][:, 0]),
        "boss_labels": boss_labels,
        "boss_animation": boss,
        "boss_animation_ms": _whole(1000.0 * fights["boss_animation_duration"][:, 0]),
        "moves": moves,
        "move": move,
        "move_ms": _whole(1000.0 * fights["boss_move_s"]),
        "mask": (action_mask_of(fights).astype(np.int64) @ powers).tolist(),
        "action": [-1, *actions[1:].tolist()],
        "intent": _intents(fights, actions),
        "taken": _tenths(fights["damage_taken"]),
        "dealt": _tenths(fights["damage_dealt"]),
    }


def _poses(poses: npt.NDArray[np.float32]) -> dict[str, list[int]]:
    return {
        "x": _whole(100.0 * poses[:, 0]),
        "y": _whole(100.0 * poses[:, 1]),
        "heading": _whole(1000.0 * poses[:, 3]),
    }


def _whole(values: npt.NDArray[Any]) -> list[int]:
    rounded: list[int] = np.rint(np.nan_to_num(np.asarray(values, np.float64))).astype(np.int64).tolist()
    return rounded


def _tenths(values: npt.NDArray[Any]) -> list[float]:
    rounded: list[float] = np.round(np.nan_to_num(np.asarray(values, np.float64)), 1).tolist()
    return rounded


def _index_names(names: Iterable[str]) -> tuple[list[str], list[int]]:
    """The names that occur, and for every record the place of its own."""
    found: dict[str, int] = {}
    places = [found.setdefault(name, len(found)) for name in names]
    return list(found), places


def _moves(numbers: npt.NDArray[np.int32], spec: FightSpec) -> tuple[list[dict[str, Any] | None], list[int]]:
    """What the boss really does, where it is known: the moves that occur with the times of their blows."""
    found, places = np.unique(numbers, return_inverse=True)
    known = spec.boss.moves
    rows: list[dict[str, Any] | None] = []
    for i in found.tolist():
        move = known[i] if 0 <= i < len(known) else None
        rows.append(
            move
            and {
                "name": killer_name(spec, i),
                "kind": move.kind,
                "end_ms": round(1000 * move.end_s),
                "hits_ms": [[round(1000 * hit.from_s), round(1000 * hit.to_s)] for hit in move.hits],
            }
        )
    return rows, places.tolist()


def _intents(fights: Fights, actions: npt.NDArray[np.int64]) -> list[int | None]:
    """Where the pressed direction pointed, as a heading in the arena: the keys are in the frame of the camera."""
    directions = ACTION_CONTROLS["direction"][actions].astype(np.int64)
    view = np.arctan2(-fights["camera_pose"][:, 3], -fights["camera_pose"][:, 4])
    headings = _whole(1000.0 * (view + directions * (2.0 * math.pi / len(DIRECTIONS))))
    pressed = (directions >= 0).tolist()
    return [heading if i and some else None for i, (heading, some) in enumerate(zip(headings, pressed, strict=True))]


def _drawings(fights: Fights, spec: FightSpec) -> dict[str, Any]:
    """Areas of blows as windows and videos draw them, what happened when, and how the fighters look."""
    drawing, history = Drawing(), History(spec)
    blows: dict[int, Any] = {}
    strikes: dict[int, Any] = {}
    events: list[list[Any]] = []
    flags: list[int] = []
    for i, fight in enumerate(fights):
        step_before = history.step
        history.notice(fight)
        player = _relative_pose(Pose.of(fight["boss_pose"]), fight["player_pose"])
        if operations := drawing.operations(boss_blows(fight, HERE, player, spec, history.spans)):
            blows[i] = operations
        if operations := drawing.operations(player_blows(fight, HERE, spec)):
            strikes[i] = operations
        new = [popup for popup in history.popups if popup.step == history.step != step_before]
        events += [[i, popup.text, popup.kind] for popup in new]
        flags.append(_flags(fight, spec, history))
    return {
        "outlines": [_steps(outline) for outline in drawing.outlines],
        "colours": drawing.colours,
        "blows": blows,
        "strikes": strikes,
        "events": events,
        "flags": flags,
    }


def _relative_pose(boss: Pose, player: npt.NDArray[np.float32]) -> Pose:
    """Where the player stands for a boss in the middle of everything that looks along its axis."""
    dx, dy = float(player[0]) - boss.x_m, float(player[1]) - boss.y_m
    sine, cosine = math.sin(boss.heading_rad), math.cos(boss.heading_rad)
    return Pose(cosine * dx - sine * dy, sine * dx + cosine * dy, float(player[3]) - boss.heading_rad)


def _steps(outline: tuple[int, ...]) -> list[int]:
    """From point to point, which takes fewer digits than the points."""
    return [*outline[:2], *(b - a for a, b in zip(outline, outline[2:], strict=False))]


def _flags(fight: np.void, spec: FightSpec, history: History) -> int:
    falls = bool(fight["player_move"] == FALL_MOVE)
    shown = {
        INVULNERABLE: bool(fight["invulnerable"]) and not falls,
        ROLLING: bool(history.traces) and history.traces[-1].rolling,
        PARRYING: is_parrying(fight, spec),
        FALLING: falls,
        OPENED: is_open(fight, spec),
        LOCKED: bool(fight["lock_on"]),
    }
    return sum(bit for bit, is_so in shown.items() if is_so)


def _thoughts(thoughts: Thoughts | None, spec: FightSpec) -> dict[str, Any] | None:
    if thoughts is None:
        return None
    digits = PROBABILITY_DIGITS if thoughts.kind == PROBABILITY else VALUE_DIGITS
    return {
        "kind": thoughts.kind,
        "actions": list(thoughts.actions),
        "records": thoughts.records.tolist(),
        "scores": _round(thoughts.scores, digits),
        "open": (thoughts.open.astype(np.int64) @ (1 << np.arange(len(thoughts.actions)))).tolist(),
        "chosen": thoughts.chosen.tolist(),
        "value": _round(thoughts.value, VALUE_DIGITS),
        "layers": [
            {"name": layer.name, "units": layer.shades.shape[1], "shades": _base64(layer.shades)}
            for layer in thoughts.layers
        ],
        "sights": sight_groups(thoughts.sights, spec),
        "sight_scale": _round(thoughts.layers[0].scale, VALUE_DIGITS) if thoughts.layers else [],
    }


def _round(values: npt.NDArray[np.float32], digits: int) -> Any:
    return np.round(values.astype(np.float64), digits).tolist()


def _base64(array: npt.NDArray[np.uint8]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


# ---------------------------------------------------------------- one fight as a file


def video_of(file: Path, number: int, suffix: str) -> bytes:
    """Fight `number` of a recording as .mp4 or .gif; RunError or MissingPackage if it cannot be made."""
    told = read_fight_file(file)
    look, (low, high) = VIDEOS[suffix], told.recording.bounds()[number - 1]
    fps = look.fps if high - low <= LONG_STEPS else STEPS_PER_S
    with _one_video, TemporaryDirectory(prefix="souls-video-") as folder:
        path = Path(folder) / f"fight{suffix}"
        write_video(path, told.recording, number - 1, spec_of(told), size=look.size, fps=fps)
        return path.read_bytes()


def shared_page(scene: Scene, title: str = "") -> str:
    """One HTML file that plays the fight wherever it is opened: script, style and data are inside."""
    script = "\n".join(EXPORT.sub("", IMPORT.sub("", _text(name))) for name in PARTS)
    return Template(_text("shared.html")).substitute(
        title=html.escape(title or f"{scene['boss']}: {scene['outcome']} after {scene['time_s']} s"),
        style=_text("viewer.css").replace("</", "<\\/"),
        # Neither data nor script may end their element, whatever names somebody has put into a recording.
        scene=json.dumps(scene, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        script=script.replace("</script", "<\\/script"),
    )


def _text(name: str) -> str:
    return (VIEWER / name).read_text(encoding="utf-8")
