"""The starts that a config asks for."""

from __future__ import annotations

from collections.abc import Sequence

from soulsgym.errors import MisuseError
from soulsgym.parts.starts.cells import make_cells
from soulsgym.parts.starts.curriculum import Curriculum
from soulsgym.parts.starts.mid_fight import MidFight
from soulsgym.parts.starts.standard import RandomPose, StandardStarts
from soulsgym.parts.starts.starts import Starts
from soulsgym.spec import FightSpec


def make_starts(
    n: int,
    spec: FightSpec,
    *,
    random_pose: bool = False,
    mid_fight: float = 0.0,
    boss_hp_share: tuple[float, float] = (0.05, 1.0),
    player_hp_share: tuple[float, float] = (0.3, 1.0),
    late_phase: float = 0.8,
    curriculum: float = 0.0,
    full: bool = True,
    phase: int = 1,
) -> Starts:
    """Starts for `n` fights that begin in `phase`; if not `full` the boss stays in it, in the middle of a fight too."""
    for name, share in (("mid_fight", mid_fight), ("late_phase", late_phase), ("curriculum", curriculum)):
        if not 0.0 <= share <= 1.0:
            raise MisuseError(f"{name} {share} is out of range; give 0.0 to 1.0")
    _check_between("boss_hp_share", boss_hp_share)
    _check_between("player_hp_share", player_hp_share)
    whole = RandomPose(n) if random_pose else StandardStarts(n)
    if mid_fight == 0.0:
        return whole
    cells = make_cells(spec, boss_hp_share, late_phase=late_phase, full=full, phase=phase)
    return MidFight(
        whole,
        n,
        spec,
        share=mid_fight,
        cells=cells,
        player_hp_share=player_hp_share,
        curriculum=Curriculum(cells.share, curriculum),
    )


def _check_between(name: str, shares: Sequence[float]) -> None:
    if len(shares) != 2 or not 0.0 <= shares[0] <= shares[1] <= 1.0:
        raise MisuseError(f"{name} {shares} is not possible; give the lowest and the highest share, within 0.0 to 1.0")
