"""Names that players read."""

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, ACTION_NAMES, CONTROL, Button
from soulsgym.errors import MisuseError
from soulsgym.labels import boss_moves_by_label
from soulsgym.render.names import (
    action_names,
    action_sentences,
    boss_label_names,
    control_name,
    move_name,
    names_table,
    plain_name,
    player_label_names,
)
from soulsgym.spec import load_fight


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("beast_tail", "beast tail"),
        ("light_1", "light 1"),
        ("RunStopLeft", "run stop left"),
        ("AttackRightHeavy1Sta", "attack right heavy 1 sta"),
        ("Idle", "idle"),
        ("", ""),
    ],
)
def test_plain_names(name, plain):
    assert plain_name(name) == plain


def test_controls():
    names = [control_name(control) for control in ACTION_CONTROLS]
    assert names[:4] == ["walk forward", "walk forward right", "walk right", "walk back right"]
    assert names[12:16] == ["roll back", "roll back left", "roll left", "roll forward left"]
    assert names[16:] == ["light attack", "heavy attack", "parry", "nothing"]
    assert control_name(np.array((-1, Button.ROLL), CONTROL)[()]) == "backstep"
    assert control_name(np.array((2, Button.LIGHT), CONTROL)[()]) == "right light attack"


def test_labels_of_the_player(spec):
    names = player_label_names(spec)
    labels = [label.name for label in spec.player_animations]
    assert names[-1] == "unknown"
    assert len(names) == len(labels) + 1
    for label, name in {
        "AttackRightLight1": "Light attack",
        "AttackRightHeavy1Sta": "Heavy attack (wind-up)",
        "RollingMedium": "Roll",
        "EStepDown": "Rolls to get up",
        "FallLoop": "Falls",
        "Idle": "Stands",
        "RunStopBack": "Stops running",
    }.items():
        assert names[labels.index(label)] == name


def test_labels_of_the_boss_depend_on_the_phase(spec):
    label = spec.boss_animations.index("Attack3012")
    assert boss_label_names(spec, 1)[label] == "Thrust"
    assert boss_label_names(spec, 2)[label] == "Tail swipe"
    assert boss_label_names(spec, 1)[-1] == "unknown"
    assert boss_label_names(spec, 9) == boss_label_names(spec, 2), "a phase that there is not is the last"
    later = spec.boss_animations.index("Attack3015")
    assert boss_label_names(spec, 1)[later] == "Head slam", "a move of another phase has its name"
    assert later not in boss_moves_by_label(spec, 1), "and is no move of this one"


@pytest.mark.parametrize("boss", ["iudex", "vordt", "margit"])
def test_names_belong_to_something(boss):
    spec = load_fight(boss)
    moves = {move.name for move in spec.boss.moves}
    assert set(names_table()[boss]) <= moves, "a name of a move that there is not"
    labels = {label.name for label in spec.player_animations}
    assert labels <= set(names_table()["player"]), "an animation that no player could read"


def test_actions_are_shown_with_arrows_and_told_in_words():
    assert len(action_names()) == len(action_sentences()) == len(ACTION_NAMES)
    assert action_names()[ACTION_NAMES.index("roll RB")] == "Roll ↘"
    assert action_sentences()[ACTION_NAMES.index("roll R")] == "rolls right"
    assert len(set(action_names())) == len(ACTION_NAMES)


def test_a_boss_of_ones_own_has_names_of_ones_own(tmp_path):
    boss = tmp_path / "sentinel.toml"
    boss.write_text("")
    assert move_name(str(boss), "shield_bash") == "Shield bash"
    assert move_name(str(boss), "idle") == "Stands"
    other = tmp_path / "other"
    other.mkdir()
    (other / "names.toml").write_text('[sentinel]\nshield_bash = "Shield charge"\n')
    assert move_name(str(other / "sentinel.toml"), "shield_bash") == "Shield charge"
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "names.toml").write_text("[sentinel]\nshield_bash = 3\n")
    with pytest.raises(MisuseError, match=r"third/names.toml: is not a table of names"):
        move_name(str(tmp_path / "third" / "sentinel.toml"), "shield_bash")
