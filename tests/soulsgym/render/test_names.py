"""Names that players read."""

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, CONTROL, Button
from soulsgym.labels import boss_moves_by_label
from soulsgym.render.names import boss_label_names, control_name, plain_name, player_label_names


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
        "AttackRightLight1": "light 1",
        "AttackRightHeavy1Sta": "heavy",
        "RollingMedium": "roll",
        "EStepDown": "get up roll",
        "FallLoop": "fall",
        "Idle": "idle",
        "RunStopBack": "run stop back",
    }.items():
        assert names[labels.index(label)] == name


def test_labels_of_the_boss_depend_on_the_phase(spec):
    label = spec.boss_animations.index("Attack3012")
    assert boss_label_names(spec, 1)[label] == "thrust"
    assert boss_label_names(spec, 2)[label] == "beast tail"
    assert boss_label_names(spec, 1)[-1] == "unknown"
    assert boss_label_names(spec, 9) == boss_label_names(spec, 2), "a phase that there is not is the last"
    later = spec.boss_animations.index("Attack3015")
    assert boss_label_names(spec, 1)[later] == "beast head slam", "a move of another phase has its name"
    assert later not in boss_moves_by_label(spec, 1), "and is no move of this one"
