"""Makes fight.png: the knight rolls through a sweep. Run it from anywhere: python docs/images/make_fight.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from soulsgym.controls import ACTION_CONTROLS, ACTION_NAMES, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.envs.render import FightRenderer
from soulsgym.movesets import Moveset, load_moveset
from soulsgym.sim.engine import SimEngine

ROLL_MOVE = -2
ROLL_BEFORE_S = 0.2
BY_THE_CLIFF = [148.0, 594.0, -1.6], [155.0, 594.0, 1.6]
"""The boss and the player: x, y [m], heading [rad]."""


def main() -> None:
    moveset = load_moveset("iudex")
    for seed in range(5000):
        story = telling_moment(moveset, seed)
        if story:
            break
    else:
        raise SystemExit("no fight shows the moment; change the search in telling_moment")
    renderer = FightRenderer(moveset)
    picture = [renderer.draw(fight, control) for fight, control in story][-1]
    import pygame

    surface = pygame.image.frombytes(picture.tobytes(), picture.shape[1::-1], "RGB")
    pygame.image.save(surface, Path(__file__).with_name("fight.png"))


def telling_moment(moveset: Moveset, seed: int) -> list[tuple[np.void, np.void]]:
    """The records and controls up to a sweep that passes through a roll, near the cliff, with both hurt already."""
    engine, starts = SimEngine(moveset), standard_starts(1)
    starts["boss_pose"], starts["player_pose"] = BY_THE_CLIFF
    engine.reset(np.ones(1, bool), starts, np.array([seed], np.uint64))
    rng, story = np.random.default_rng(seed), []
    fight = engine.fights[0]
    while fight["outcome"] == 0 and fight["step"] < 600:
        action = play(moveset, fight, rng)
        controls = ACTION_CONTROLS[action : action + 1]
        engine.step(controls)
        story = [*story[-20:], (fight.copy(), controls[0])]
        hurt = fight["taken_total"] > 0 and fight["dealt_total"] > 100 and fight["player_sp"][0] > 20
        swept = fight["dodged"] >= 0 and any(hit.sweep for hit in moveset.boss.moves[fight["dodged"]].hits)
        rolled = fight["player_move"] == ROLL_MOVE and fight["player_move_s"] > 0.25
        if swept and hurt and rolled and fight["player_pose"][0] > BY_THE_CLIFF[0][0]:
            return story
    return []


def play(moveset: Moveset, fight: np.void, rng: np.random.Generator) -> int:
    """Walk up, hit, and mostly roll when a blow comes."""
    distance_m = np.hypot(*(fight["player_pose"][:2] - fight["boss_pose"][:2]))
    coming = any(
        0.0 < hit.from_s - fight["boss_move_s"] < ROLL_BEFORE_S for hit in moveset.boss.moves[fight["boss_move"]].hits
    )
    names = (
        ["roll F", "roll LF", "roll R", "roll B", "nothing"] if coming else ["light attack", "light attack", "walk R"]
    )
    if not coming and distance_m > 2.3:
        names = ["walk F"]
    action = ACTION_NAMES.index(rng.choice(names))
    return action if fight["action_mask"][action] else NOTHING


if __name__ == "__main__":
    main()
