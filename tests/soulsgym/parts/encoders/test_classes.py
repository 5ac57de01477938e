"""Classes of animations, by their names."""

from dataclasses import replace

from soulsgym.parts.encoders.classes import MOVEMENT, boss_classes, player_classes


def test_the_boss_has_25_classes_in_order_of_appearance(spec):
    classes = boss_classes(spec)
    assert len(classes) == 25
    assert classes.names[:2] == ("Attack3000", "Attack3001")
    assert classes.names[16:] == (
        "Attack3029", "ThrowAtk", "ThrowDef", MOVEMENT, "IdleBattle", "FallingDefault", "LandDefault", "SABreak",
        "DamageParryEnemy1",
    )  # fmt: skip


def test_walks_and_turns_of_the_boss_are_one(spec):
    classes = boss_classes(spec)
    moving = [spec.boss_animations[i] for i in (classes.of_id == classes.number(MOVEMENT)).nonzero()[0]]
    assert moving == [name for name in spec.boss_animations if name.startswith(("Walk", "Turn"))]
    assert len(moving) == 8


def test_the_player_has_31_classes(spec):
    classes = player_classes(spec)
    groups = [
        [spec.player_animations[i].name for i in (classes.of_id == number).nonzero()[0]]
        for number in range(len(classes))
    ]
    assert len(classes) == 31
    assert [group for group in groups if len(group) > 1] == [
        ["AddDamageDefault", "AddDamageStartLeft", "AddDamageStartRight", "AddDamageStartFront", "AddDamageStartBack"],
        ["Idle", "Move", "None", "RunStopFront", "RunStopBack", "RunStopLeft", "RunStopRight"],
        ["QuickTurnLeft180", "QuickTurnRight180"],
        ["LandLow", "Land"],
        ["LandFaceUp", "LandFaceDown"],
        [
            "FallStart", "FallStartFaceUp", "FallStartFaceDown", "FallLoop", "FallLoopFaceUp", "FallLoopFaceDown",
            "FallAttackStart",
        ],
    ]  # fmt: skip


def test_another_boss_has_classes_of_its_own(spec):
    """What its moves of walking and turning show is one, whatever it is called."""
    moves = {move.kind: move for move in spec.boss.moves}
    own = (
        replace(moves["turn"], animation="Pivot"),
        replace(moves["attack"], animation="Bite"),
        replace(moves["walk"], animation="Crawl"),
    )
    boss = replace(spec.boss, moves=own)
    other = replace(spec, boss=boss, boss_animations=("Pivot", "Bite", "Crawl", "WalkFrontBattle"))
    classes = boss_classes(other)
    assert classes.names == (MOVEMENT, "Bite", "WalkFrontBattle")
    assert classes.of_id.tolist() == [0, 1, 0, 2]
    assert boss_classes(replace(other, boss_animations=("Bite",))).number(MOVEMENT) == -1


def test_animations_without_a_group_are_classes_of_their_own(spec):
    labels = tuple(replace(label, group="") for label in spec.player_animations)
    classes = player_classes(replace(spec, player_animations=labels))
    assert classes.names == tuple(label.name for label in labels)
