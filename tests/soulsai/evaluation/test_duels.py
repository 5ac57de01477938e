"""The duel board."""

import numpy as np

from soulsai.evaluation import ScriptedFighter
from soulsai.evaluation.duels import HEAD, duels_of, play_seeds
from soulsgym.envs.simulated import FightSettings, simulated_batch
from soulsgym.state import FIGHT, Outcome


def test_rows():
    endings = np.zeros(4, FIGHT)
    endings["outcome"] = [Outcome.WON, Outcome.DIED, Outcome.WON, Outcome.RUNNING]
    endings["time_s"], endings["dealt_total"], endings["taken_total"] = [10, 20, 30, 40], 1000, [0, 100, 200, 300]
    assert duels_of("you", endings).row == ("you", "2", "4", "25.0 s", "1,000", "150")
    assert len(HEAD) == len(duels_of("you", endings[:0]).row)


def test_the_same_fights_as_those_of_the_person():
    settings = FightSettings("iudex", changes=True)
    endings = play_seeds(ScriptedFighter("idle"), settings, [7, 8])
    batch = simulated_batch(settings)
    for seed, ending in zip((7, 8), endings, strict=True):
        batch.begin(seeds=np.array([seed], np.uint64))
        while not batch.over.any():
            batch.step(np.array([19]))
        assert batch.record()["time_s"][0] == ending["time_s"]
        assert ending["outcome"] == Outcome.DIED


def test_somebody_who_never_ends_is_stopped():
    assert play_seeds(ScriptedFighter("idle"), FightSettings("iudex"), [1], limit=5)["step"].tolist() == [5]
