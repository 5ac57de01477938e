"""The colours of the picture."""

from __future__ import annotations

Colour = tuple[int, int, int]

ABYSS: Colour = (7, 7, 10)
ROCK: Colour = (30, 30, 34)
WALL: Colour = (150, 139, 121)
CLIFF: Colour = (214, 84, 62)
GROUND_LOW: Colour = (43, 43, 46)
GROUND_HIGH: Colour = (112, 103, 88)
GRID: Colour = (92, 88, 82)

PLAYER: Colour = (84, 156, 255)
PLAYER_EDGE: Colour = (206, 228, 255)
PLAYER_STRIKE: Colour = (120, 200, 255)
INVULNERABLE: Colour = (96, 230, 130)
PARRY: Colour = (255, 214, 92)

BOSS: Colour = (168, 42, 36)
BOSS_EDGE: Colour = (244, 132, 108)
BOSS_OPEN: Colour = (216, 176, 70)
TENDRIL: Colour = (18, 10, 16)
WARNING: Colour = (255, 190, 70)
DANGER: Colour = (255, 74, 30)
BLADE: Colour = (255, 236, 200)

TEXT: Colour = (232, 228, 218)
FAINT: Colour = (160, 156, 148)
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
PLATE: Colour = (10, 10, 12)
TRACK: Colour = (46, 40, 38)
HP: Colour = (178, 32, 30)
HP_REST: Colour = (222, 178, 70)
STAMINA: Colour = (70, 158, 78)
EXHAUSTED: Colour = (226, 134, 48)
VICTORY: Colour = (240, 206, 120)
DEATH: Colour = (176, 22, 22)


def mix(a: Colour, b: Colour, share: float) -> Colour:
    """A colour on the way from a to b."""
    share = min(max(share, 0.0), 1.0)
    return (
        round(a[0] + share * (b[0] - a[0])),
        round(a[1] + share * (b[1] - a[1])),
        round(a[2] + share * (b[2] - a[2])),
    )
