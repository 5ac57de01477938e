"""SoulsGym's tables hold the numbers that its users' encoders are built on."""

import numpy as np
import pytest

from soulsgym.core import FOLDERS, static
from soulsgym.errors import MisuseError
from soulsgym.games.game import TABLES, StaticGameData

DARK_SOULS, ELDEN_RING = FOLDERS


def test_every_table_knows_both_games():
    for table in TABLES:
        assert list(getattr(static, table)) == [DARK_SOULS, ELDEN_RING]


def test_actions_are_what_is_pressed():
    actions = static.actions[DARK_SOULS]
    assert list(actions) == list(range(20))
    assert actions[3] == ["right", "backward"]
    assert actions[15] == ["left", "forward", "roll"]
    assert [actions[number] for number in (16, 17, 18, 19)] == [["lightattack"], ["heavyattack"], ["parry"], []]
    assert {key for keys in actions.values() for key in keys} <= static.keybindings[DARK_SOULS].keys()


def test_animations_have_their_numbers_and_times():
    player, bosses = static.player_animations[DARK_SOULS], static.boss_animations[DARK_SOULS]
    assert [one["ID"] for one in player.values()] == list(range(50))
    assert player["RollingMedium"] == {"ID": 21, "timings": [0.69, 0.73, 0.75]}
    assert "DeathIdle" in static.critical_player_animations[DARK_SOULS]
    for boss, number, last in (("iudex", 32, "DamageParryEnemy1"), ("vordt", 27, "SABreak")):
        known = bosses[boss]["all"]
        assert [one["ID"] for one in known.values()] == list(range(len(known)))
        assert (list(known)[number - 1], len(known) >= number) == (last, True)  # those that it lacks come after its own
        assert sum(len(bosses[boss][kind]) for kind in ("attacks", "movement", "misc")) == len(known)
    assert bosses["iudex"]["all"]["SABreak"] == {"ID": 30, "type": "misc"}
    assert bosses["iudex"]["attacks"][-1] == "ThrowDef"
    assert bosses["vordt"]["movement"][0] == "WalkFrontBattle"


def test_places_attributes_and_bonfires():
    iudex = static.coordinates[DARK_SOULS]["iudex"]
    assert iudex["player_init_poses_random"].shape == (11, 4)
    assert iudex["boss_init_pose"] == pytest.approx(np.array([141.3, 591.9, -68.8, 0.6]))
    assert static.player_stats[DARK_SOULS]["iudex"] == [9, 12, 10, 11, 15, 13, 12, 9, 9, 7]
    assert static.bonfires[DARK_SOULS]["Cemetery of Ash"] == 4002951


def test_keys_and_addresses():
    assert static.keymap[DARK_SOULS][static.keybindings[DARK_SOULS]["roll"]] == 0x20
    assert static.addresses[DARK_SOULS]["PlayerHP"]["offsets"] == [0x80, 0x1F90, 0x18, 0xD8]
    assert static.address_bases[DARK_SOULS]["Cam"] == 0x4796298
    assert static.address_base_patterns[DARK_SOULS]["GameMan"]["pattern"].startswith("48 8B 05 ??")


def test_a_game_without_fights_has_keys_and_addresses_alone():
    data = StaticGameData(ELDEN_RING)
    assert (data.actions, data.coordinates, data.boss_animations, data.player_stats) == ({}, {}, {}, {})
    assert "PlayerMP" in data.addresses
    assert data.keybindings["forward"] == "W"


def test_the_bundle_of_one_game_is_its_tables():
    data = StaticGameData(DARK_SOULS)
    assert all(getattr(data, table) is getattr(static, table)[DARK_SOULS] for table in TABLES)
    with pytest.raises(MisuseError, match="game 'DarkSouls3' is not known, did you mean 'DarkSoulsIII'"):
        StaticGameData("DarkSouls3")
