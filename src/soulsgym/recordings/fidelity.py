"""The distance between a recording and the simulator."""

from __future__ import annotations

from soulsgym.errors import RecordingError
from soulsgym.recordings.boss_metrics import boss_metrics
from soulsgym.recordings.departure import player_departure
from soulsgym.recordings.exact import exact_departures, other_data
from soulsgym.recordings.metrics import Fidelity
from soulsgym.recordings.player_metrics import player_metrics
from soulsgym.recordings.recording import Recording
from soulsgym.recordings.replay import Replay, unbound_buttons
from soulsgym.spec import FightSpec


def measure_fidelity(recording: Recording, spec: FightSpec) -> Fidelity:
    """Replay the recording on the simulator and measure every metric.

    The player restarts from recorded moments, with the boss, the camera, the blows and, within its step, the moment of
    a press as recorded; the boss restarts with every move, with the player as recorded. Nothing is fitted here. Beside
    that stands a replay without restarts: of the player, or of the whole fight if the simulator made the recording.
    Metrics need a record of every step; where steps were skipped there are none.
    """
    replay = Replay(spec)
    episodes = replay.follow(recording)
    exact, note = recording.simulation is not None, other_data(recording)
    if exact:
        departures = () if note else exact_departures(recording)
    else:
        departures = tuple(player_departure(episode, spec) for episode in episodes)
    if not episodes and not exact:
        raise RecordingError(f"{recording.source}: no fight has two records in a row; record without skipping steps")
    return Fidelity(
        source=recording.source,
        steps=len(recording),
        episodes=len(recording.bounds()),
        unbound=tuple(button.name.lower() for button in unbound_buttons(recording, spec)),
        metrics=(*player_metrics(episodes, spec), *boss_metrics(episodes, replay)) if episodes else (),
        departures=departures,
        exact=exact,
        note=note,
    )
