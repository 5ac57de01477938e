"""Randomisation of numbers that recordings told: only their intervals are left of it."""

import numpy as np
import pytest

from soulsgym.sim.pack import pack
from soulsgym.spec import load_fight

KNOWN = """
[known]
"move.thrust.hit.thrust.from_s" = [20, {low}, {high}]
"move.thrust.hit.thrust.reach_m" = [9, 4.8, 5.0]
"move.thrust.hit.thrust.attack" = [9, 229.0, 237.0]
"move.thrust.end_s" = [5, 2.7, 2.8]
"""


@pytest.fixture
def known(tmp_path):
    move = next(move for move in load_fight("iudex").boss.moves if move.name == "thrust")
    hit = move.hits[0]
    file = tmp_path / "known.toml"
    text = KNOWN.format(low=hit.from_s - 0.01, high=hit.from_s + 0.01)
    lines = text.replace("229.0, 237.0", f"{hit.power.attack - 2}, {hit.power.attack + 2}")
    lines = lines.replace("4.8, 5.0", f"{hit.reach_m - 0.1}, {hit.reach_m + 0.1}")
    lines = lines.replace("2.7, 2.8", f"{move.end_s - 0.01}, {move.end_s + 0.01}")
    file.write_text(lines)
    return load_fight("iudex", str(file))


def test_what_is_known_is_randomised_within_its_interval(known):
    boss, tables = known.boss, pack(known)[0]
    index = boss.move_index("thrust")
    row, move = tables["boss_moves"][index], boss.moves[index]
    hit = tables["hits"][row["first_hit"]]
    assert row["shift_scale"] * boss.randomize.hit_shift_s == pytest.approx(0.01)
    assert row["time_scale"] * boss.randomize.timing * move.end_s == pytest.approx(0.01)
    assert hit["reach_scale"] * boss.randomize.reach * move.hits[0].reach_m == pytest.approx(0.1)
    assert hit["damage_scale"] * boss.randomize.damage * move.hits[0].power.attack == pytest.approx(2.0)


def test_the_rest_is_randomised_as_before(known):
    tables, standard = pack(known)[0], pack(load_fight("iudex"))[0]
    for table, key in (("boss_moves", "shift_scale"), ("boss_moves", "time_scale"), ("hits", "reach_scale")):
        count = len(known.boss.moves) if table == "boss_moves" else sum(len(move.hits) for move in known.boss.moves)
        assert (standard[table][key][:count] == 1.0).all()
        assert np.count_nonzero(tables[table][key][:count] != 1.0) == 1
