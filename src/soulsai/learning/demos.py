"""Recordings to learn from, checked to be of the fight that is trained."""

from __future__ import annotations

from pathlib import Path

from soulsai.acting.demonstrations import Demos, demos_of
from soulsai.config.schema import Config
from soulsai.errors import ConfigError
from soulsai.evaluation.thoughts import FightFile, read_fight_file
from soulsai.learning.wiring import build_parts, main_spec
from soulsai.runs.fight_files import file_name
from soulsgym.errors import RecordingError
from soulsgym.recordings.recording import Recording
from soulsgym.spec import FightSpec


def load_demos(config: Config) -> Demos:
    """What the recordings of a config show, as its agent would have seen it."""
    recordings, spec = read_demos(config), main_spec(config)
    decisions, masks = config.fight.decisions, config.actions.masks
    return Demos.join(
        [
            demos_of(recording, build_parts(config, spec, 1), decisions=decisions, masks=masks)
            for recording in recordings
        ]
    )


def read_demos(config: Config) -> list[Recording]:
    """The recordings of a config; ConfigError or RecordingError of one that is not of its fight."""
    if not config.demos.files:
        return []
    if config.world != "fight":
        raise ConfigError(f"demos.files are of fights, and world = {config.world!r} has none; leave them out")
    spec, found = main_spec(config), []
    for file in config.demos.files:
        told = read_fight_file(Path(file))
        _refuse_other_fight(file, told, config, spec)
        found.append(told.recording)
    return found


def _refuse_other_fight(file: str, told: FightFile, config: Config, spec: FightSpec) -> None:
    """RecordingError unless it is of the boss, and of as much of the fight; a game tells the boss by his health."""
    simulation, fight = told.recording.simulation, config.fight
    boss = told.about.get("boss") or (file_name(simulation.settings.boss) if simulation else "")
    if boss and boss != file_name(fight.boss):
        raise RecordingError(f"{file}: is of {boss}, and this run trains against {file_name(fight.boss)}; give others")
    health = float(told.recording.fights["boss_max_hp"][0])
    if not boss and health != spec.boss.hp:
        raise RecordingError(
            f"{file}: is of another boss: his health is {health:,.0f}, that of {file_name(fight.boss)} "
            f"{spec.boss.hp:,.0f}; give other recordings"
        )
    full = simulation.settings.changes if simulation else told.about.get("full", fight.full)
    phase = simulation.settings.phase if simulation else fight.phase
    if (full, phase) != (fight.full, fight.phase):
        of, wanted = (
            "the full fight" if a else f"phase {b} alone" for a, b in ((full, phase), (fight.full, fight.phase))
        )
        raise RecordingError(f"{file}: is of {of}, and this run trains on {wanted}; record that")
