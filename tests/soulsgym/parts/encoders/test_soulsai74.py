"""The 74 numbers, by hand and against those SoulsAI made of a recorded fight."""

import json
from pathlib import Path

import numpy as np
import pytest

from soulsgym.parts.encoders import make_encoder
from soulsgym.recordings import read_recording

SHARED = Path(__file__).parents[4].parent / "shared" / "data"
RECORDING, ENCODING = SHARED / "iudex_recording.json", SHARED / "iudex_encoding.json"


@pytest.fixture
def encoder(spec):
    return make_encoder("soulsai74", 1, spec)


@pytest.mark.skipif(not ENCODING.exists(), reason="the recorded fight is not here")
def test_a_recorded_fight_is_encoded_as_by_soulsai(encoder):
    recording, expected = read_recording(RECORDING), np.array(json.loads(ENCODING.read_text()))
    out, alone = np.zeros((1, 74), np.float32), np.ones(1, np.bool_)
    assert len(recording) == len(expected) == 431
    assert len(recording.bounds()) == 1
    encoder.begin(recording.fights[:1], alone)
    for step, row in enumerate(expected):
        encoder.encode(recording.fights[step : step + 1], recording.actions[step : step + 1], alone, out)
        assert out[0] == pytest.approx(row, abs=1e-6), step


def test_all_numbers_of_a_record_made_by_hand(encoder, encodings, record):
    (row,) = encodings(encoder, [record(
        player_hp=227.0, player_sp=-19.0, boss_hp=259.25,
        player_pose=(130.0, 590.0, -64.0, np.pi / 6), boss_pose=(190.0, 640.0, -55.0, -np.pi / 2),
        camera_pose=(0.0, 0.0, 0.0, 0.3, 0.4, 0.5),
        player_animation="RollingMedium", player_animation_duration=0.4,
        boss_animation="Attack3029", boss_animation_duration=1.25,
    )])  # fmt: skip
    fixed = [0.5, -0.2, 0.25, np.hypot(60.0, 50.0) / 50.0, 0.25, 0.5, 0.5, 0.5, np.sqrt(0.75), 1.0, 1.0, 1.0,
             -1.0, 0.0, 0.6, 0.8, 0.4, 1.25]  # fmt: skip
    values = list(row.values())
    assert len(values) == 74
    assert values[:18] == pytest.approx(fixed, abs=1e-6)
    assert np.flatnonzero(values[18:]).tolist() == [33 - 18, 65 - 18]
    assert row["player_is_RollingMedium"] == row["boss_is_Attack3029"] == 1.0


@pytest.mark.parametrize(
    ("player", "boss", "columns"),
    [
        ("AddDamageStartBack", "Attack3000", [18, 49]),
        ("GuardBreakWall", "Attack3015", [19, 64]),
        ("RunStopRight", "ThrowAtk", [31, 66]),
        ("QuickTurnRight180", "TurnBattle_Left180", [35, 68]),
        ("ParryLeftStart", "WalkFrontBattle", [45, 68]),
        ("Land", "IdleBattle", [46, 69]),
        ("LandFaceDown", "LandDefault", [47, 71]),
        ("FallAttackStart", "DamageParryEnemy1", [48, 73]),
        ("what nobody knows", "Attack1500", []),
    ],
)
def test_animations_have_the_columns_of_soulsai(encoder, encodings, record, player, boss, columns):
    (row,) = encodings(encoder, [record(player_animation=player, boss_animation=boss)])
    assert (np.flatnonzero(list(row.values())[18:]) + 18).tolist() == columns


def test_walking_and_turning_add_up(encoder, encodings, record):
    shown = [
        ("IdleBattle", 0.9, 0.9),
        ("WalkFrontBattle", 0.03, 0.1),
        ("WalkFrontBattle", 0.13, 0.2),
        ("TurnBattle_Left90", 0.05, 0.3),
        ("TurnBattle_Left90", 0.15, 0.4),
        ("WalkLeftBattle", 0.02, 0.5),
        ("Attack3001", 0.04, 0.04),
        ("Attack3001", 0.14, 0.14),
        ("WalkLeftBattle", 0.02, 0.1),
    ]
    rows = encodings(encoder, [record(boss_animation=name, boss_animation_duration=s) for name, s, _ in shown])
    assert [row["boss_animation_s"] for row in rows] == pytest.approx([s for _, _, s in shown], abs=1e-6)


def test_walking_is_counted_anew_in_the_next_fight(encoder, encodings, record):
    walk = [record(boss_animation="WalkBackBattle", boss_animation_duration=s) for s in (0.1, 0.2, 0.3)]
    turn = record(boss_animation="TurnBattle_Left90", boss_animation_duration=0.1)
    assert encodings(encoder, [*walk, turn])[-1]["boss_animation_s"] == pytest.approx(0.4)
    assert encodings(encoder, [turn])[0]["boss_animation_s"] == pytest.approx(0.1)
