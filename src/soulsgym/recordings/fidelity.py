"""The distance between a recording of the game and the simulator."""

from __future__ import annotations

from soulsgym.errors import RecordingError
from soulsgym.movesets import Moveset
from soulsgym.recordings.boss_metrics import boss_metrics
from soulsgym.recordings.metrics import Fidelity
from soulsgym.recordings.player_metrics import player_metrics
from soulsgym.recordings.recording import Recording
from soulsgym.recordings.replay import Replay, unbound_buttons


def measure_fidelity(recording: Recording, moveset: Moveset) -> Fidelity:
    """Replay the recording on the simulator of `moveset` and measure every metric.

    The player restarts from recorded moments, with the boss, the camera and the blows as recorded; the boss restarts
    with every move, with the player as recorded. Nothing is fitted here.
    """
    replay = Replay(moveset)
    episodes = replay.follow(recording)
    if not episodes:
        raise RecordingError(f"{recording.source}: no episode has two steps; record at least one whole fight")
    return Fidelity(
        source=recording.source,
        steps=len(recording),
        episodes=len(episodes),
        unbound=tuple(button.name.lower() for button in unbound_buttons(recording, moveset)),
        metrics=(*player_metrics(episodes, moveset), *boss_metrics(episodes, replay)),
    )
