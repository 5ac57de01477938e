"""Recordings of bosses whose numbers the calibration does not know."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import tomli_w

from soulsgym.actions import ACTION_CONTROLS, NOTHING, Button, controls_of
from soulsgym.calibration.calibrate import calibrate
from soulsgym.engine import standard_starts
from soulsgym.players.registry import make_player
from soulsgym.recordings.recording import Recording
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.spec.draw import draw_variant
from soulsgym.spec.fight import read_files
from soulsgym.spec.overlay import overlay
from soulsgym.state import action_mask_of, observation_of

PARRY = int(np.flatnonzero(ACTION_CONTROLS["button"] == int(Button.PARRY))[0])


def recorded(spec, players=("duellist", "random", "roll_spam"), n=8, steps=500, seed=1):
    """Fights of every player in both phases, with no more in the records than a game shows."""
    records, actions, episodes = [], [], []
    for number, name in enumerate(players):
        engine = SimEngine(spec, n, changes=True)
        starts, everyone = standard_starts(n), np.ones(n, np.bool_)
        starts["phase"][n // 2 :] = 2
        engine.reset(everyone, starts, np.arange(n, dtype=np.uint64) + np.uint64(100 * number + seed))
        player = make_player(name, load_fight("iudex"), n, number) if isinstance(name, str) else name
        player.reset(everyone)
        rows, pressed = [engine.fights.copy()], [np.full(n, NOTHING)]
        for _ in range(steps):
            chosen = player.act(observation_of(engine.fights), action_mask_of(engine.fights))
            engine.step(controls_of(chosen))
            rows.append(engine.fights.copy())
            pressed.append(chosen)
        for fight in range(n):
            own = np.stack([row[fight] for row in rows])
            until = min(int(np.argmax(own["outcome"] != 0)) or len(own), len(own) - 1) + 1
            records.append(own[:until])
            actions.append(np.array([row[fight] for row in pressed])[:until])
            episodes.append(np.full(until, len(episodes)))
    fights = np.concatenate(records)
    for key in ("boss_move", "player_move", "dodged", "hit_by", "killed_by", "landed"):
        fights[key] = -1
    fights["boss_move_s"] = fights["player_move_s"] = fights["invulnerable"] = 0
    return Recording(fights, np.concatenate(actions).astype(np.int64), np.concatenate(episodes))


class Guard:
    """Walks up to the boss, and holds the shield against him whenever he can."""

    def reset(self, mask):
        """Nothing to forget."""

    def act(self, observation, mask):
        """The parry where it is open, else the way forward."""
        return np.where(mask[:, PARRY] == 1, PARRY, np.where(mask[:, 0] == 1, 0, NOTHING))


@pytest.fixture(scope="session")
def record():
    return recorded


@pytest.fixture(scope="session")
def files():
    return read_files("iudex")


def hidden_boss(files, changes, folder):
    """The fight of changes, and the whole content of its file."""
    file = folder / "hidden.toml"
    file.write_text(tomli_w.dumps(changes))
    return load_fight("iudex", str(file)), overlay(files.content, changes)


@pytest.fixture(scope="session")
def drawn(files, tmp_path_factory):
    """A drawn boss: his recording, what was made of it, and his true numbers."""
    spec, content = hidden_boss(files, draw_variant("iudex", 905), tmp_path_factory.mktemp("drawn"))
    recording = recorded(spec)
    return recording, calibrate([recording], files), content


@pytest.fixture(scope="session")
def restless(files):
    """A boss and a knight who differ in what is neither drawn nor seen at a glance, and their true numbers."""
    spec = load_fight("iudex")
    hits = ((move, tuple(replace(hit, guard_stamina=21.5) for hit in move.hits)) for move in spec.boss.moves)
    acts = tuple(replace(act, cooldown_s=4.0) for act in spec.boss.phases[0].acts)
    after = replace(spec.boss.phases[0].after, near_s=(1.0, 1.6))
    phases = replace(spec.boss.phases[0], acts=acts, after=after), *spec.boss.phases[1:]
    boss = replace(spec.boss, moves=tuple(replace(move, hits=own) for move, own in hits), phases=phases)
    walk = replace(spec.player.walk, full_m=(0.45, 0.404, 0.3, 0.37))
    player = replace(spec.player, sp_per_s=60.0, walk=walk, roll=replace(spec.player.roll, sp_cost=20.0))
    hidden = replace(spec, boss=boss, player=player)
    return hidden, calibrate([recorded(hidden, ("duellist", "prober", Guard()), n=12, steps=600)], files)


@pytest.fixture(scope="session")
def surprising(files, tmp_path_factory):
    """A boss with an attack, a chain and a threshold that the file does not have."""
    changes = draw_variant("iudex", 906)
    move = copy.deepcopy(files.content["move"]["chop"])
    move |= {"animation": "Attack3015", "link_s": 1.2, "label_end_s": 1.6, "end_s": 2.3, "source": "guess"}
    move["track"] = {"aim": {"from_s": 0.0, "to_s": 0.8, "deg_per_s": 150.0, "source": "guess"}}
    move["hit"]["chop"] |= {"from_s": 0.9, "to_s": 1.05, "reach_m": 3.6, "arc_deg": [-90.0, 90.0], "attack": 150}
    changes["move"]["surprise"] = move
    phase = changes.setdefault("phase", {}).setdefault("1", {})
    phase["changes_at_hp_share"] = 0.8
    phase["rule"] = copy.deepcopy(phase.get("rule", files.content["phase"]["1"]["rule"]))
    for rule in phase["rule"]:
        if "thrust" in rule["weights"]:
            rule["weights"]["surprise"] = 60.0
    chains = [{"weight": 1.0, "links": []}, {"weight": 1.0, "links": [{"move": "bash", "within_m": 9.0}]}]
    act = {"cooldown_s": 2.0, "after_odds": 0.5, "approach_m": 4.0, "approach_s": 2.0, "source": "guess"}
    phase.setdefault("act", {})["surprise"] = act | {"chains": chains}
    more = {"weight": 80.0, "links": [{"move": "chop", "within_m": 9.0}]}
    own = files.content["phase"]["1"]["act"]["thrust"]["chains"]
    phase["act"].setdefault("thrust", {})["chains"] = [*copy.deepcopy(own), more]
    spec, content = hidden_boss(files, changes, tmp_path_factory.mktemp("surprising"))
    recording = recorded(spec, n=10)
    return recording, calibrate([recording], files), content
