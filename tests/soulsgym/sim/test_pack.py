"""The tables the kernels read, against numbers worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from soulsgym.errors import DataError
from soulsgym.sim.pack import cumulative, pack
from soulsgym.sim.tables import (
    MAX_ACTS,
    MAX_AFTER,
    MAX_HITS,
    MAX_INTERRUPTS,
    MAX_TIMERS,
    TICKS_PER_S,
    TICKS_PER_STEP,
    TURN_ACT,
)
from soulsgym.spec.boss import MOVE_KINDS, Chain, Interrupt, Link, Motion, Run, Throw, Track
from soulsgym.spec.damage import Defence, Power
from soulsgym.spec.player import Strike


@pytest.fixture(scope="module")
def tables(spec):
    return pack(spec)[0]


@pytest.fixture(scope="module")
def easy(spec):
    """The moveset with a clock of 0.6 label seconds a step, so that a tick is 0.1 of them."""
    return replace(spec, player=replace(spec.player, label_s_per_step=0.6))


def with_move(spec, name, **changes):
    moves = tuple(replace(move, **changes) if move.name == name else move for move in spec.boss.moves)
    return replace(spec, boss=replace(spec.boss, moves=moves))


def boss_curve(spec, name, **changes):
    """The curve of a boss move: a row per tick of forward, right, chase share and turn."""
    packed = pack(with_move(spec, name, **changes))[0]
    row = packed["boss_moves"][spec.boss.move_index(name)]
    return packed["boss_curves"][row["first_row"] : row["first_row"] + row["rows"]]


def test_cumulative_is_straight_within_every_stretch():
    # 1 m in the first 0.2 s, then 2 m and 4 m within 0.1 s each, then nothing.
    times_s = np.array([0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 9.0])
    assert cumulative(0.2, 0.1, (1.0, 2.0, 4.0), times_s) == pytest.approx([0.0, 0.5, 1.0, 2.0, 3.0, 7.0, 7.0])


def test_motion_is_sampled_once_a_tick(easy):
    motion = Motion(first_s=0.2, step_s=0.2, forward_m=(1.0, 2.0), right_m=(-1.0,))
    curve = boss_curve(easy, "punch", motion=motion, end_s=0.5, hits=(), tracks=())
    assert len(curve) == 5 + 3
    assert curve[:, 0] == pytest.approx([0.0, 0.5, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0])
    assert curve[:, 1] == pytest.approx([0.0, -0.5, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0])
    assert not curve[:, 2:].any()


def test_loop_is_unrolled_to_the_end_of_the_move(easy):
    # The loop begins after the stretch that ends at 0.2 s: 2 m, 3 m, 2 m, 3 m ...
    motion = Motion(first_s=0.1, step_s=0.1, forward_m=(5.0, 1.0, 2.0, 3.0), right_m=(), loop_from_s=0.2)
    curve = boss_curve(easy, "walk", motion=motion, end_s=0.9)
    assert np.diff(curve[:10, 0]) == pytest.approx([5.0, 1.0, 2.0, 3.0, 2.0, 3.0, 2.0, 3.0, 2.0])


def test_loop_of_the_shipped_walk_goes_on_for_the_whole_move(spec, tables):
    row = tables["boss_moves"][spec.boss.move_index("walk")]
    metres = np.diff(tables["boss_curves"][row["first_row"] : row["first_row"] + row["rows"] - 3, 0])
    assert (metres > 0.0).all()


def test_chase_share_of_a_stretch_is_spread_over_its_ticks(easy):
    # 0.75 of the distance in 0.2 s, two ticks: each closes half of what is left.
    motion = Motion(first_s=0.2, step_s=0.2, forward_m=(), right_m=(), chase_share=(0.0, 0.75, 0.0))
    curve = boss_curve(easy, "leap", motion=motion, end_s=0.8, hits=(), tracks=())
    assert curve[:8, 2] == pytest.approx([0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
    assert (1.0 - curve[2, 2]) * (1.0 - curve[3, 2]) == pytest.approx(1.0 - 0.75)


def test_turning_is_per_tick_and_the_fastest_track_counts(easy):
    tracks = (Track(0.0, 0.3, 60.0), Track(0.2, 0.5, 120.0))
    curve = boss_curve(easy, "punch", motion=None, end_s=0.6, hits=(), tracks=tracks)
    assert np.degrees(curve[:7, 3]) * TICKS_PER_S == pytest.approx([60.0, 60.0, 120.0, 120.0, 120.0, 0.0, 0.0])


def test_a_walking_boss_turns_all_the_time(spec, tables):
    row = tables["boss_moves"][spec.boss.move_index("strafe_left")]
    turns = tables["boss_curves"][row["first_row"] : row["first_row"] + row["rows"], 3]
    assert turns == pytest.approx(math.radians(spec.boss.turn_deg_per_s) / 60.0)


def test_player_motion_is_cumulative_and_holds_its_end(easy):
    motion = Motion(first_s=0.1, step_s=0.1, forward_m=(1.0, -0.5), right_m=())
    moves = tuple(
        replace(move, motion=motion, end_s=0.4) if move.name == "light_1" else move for move in easy.player.moves
    )
    packed = pack(replace(easy, player=replace(easy.player, moves=moves)))[0]
    row = packed["player_moves"][[move.name for move in moves].index("light_1")]
    assert packed["curves"][row["forward_curve"] :][:8] == pytest.approx([0.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    assert (row["right_curve"], row["backward_curve"]) == (-1, -1)


def test_first_metre_of_a_roll_stands_before_its_profile(spec, tables):
    roll, const = spec.player.roll, tables["constants"]
    curve = tables["curves"][const["roll_back_left_curve"] :]
    total = roll.first_backward_m + sum(roll.backward_left_m)
    assert curve[0] == 0.0
    assert curve[math.ceil(2.0 * roll.end_s / const["tick_s"])] == pytest.approx(total)


def test_clock(tables):
    const = tables["constants"]
    assert const["tick_s"] == pytest.approx(0.097 / TICKS_PER_STEP)
    assert const["label_step_s"] == pytest.approx(0.097)
    assert (const["player_max_hp"], const["boss_max_hp"]) == (454.0, 1037.0)


@pytest.mark.parametrize(
    ("move", "label"),
    [
        ("thrust", 12),
        ("idle", 23),
        ("transform", -1),
        ("dash", 0),
        ("swing_finish", 16),
        ("throw", 17),
        ("stagger", 30),
    ],
)
def test_boss_labels_are_ids(spec, tables, move, label):
    assert tables["boss_moves"][spec.boss.move_index(move)]["animation"] == label


def test_ids_of_known_labels(spec):
    assert spec.boss_animations.index("Attack3012") == 12
    assert spec.boss_animations.index("IdleBattle") == 23
    assert "Attack1500" not in spec.boss_animations
    names = [label.name for label in spec.player_animations]
    assert {name: names.index(name) for name in ("Idle", "Move", "RollingMedium", "ParryLeftStart", "FallLoop")} == {
        "Idle": 17, "Move": 18, "RollingMedium": 21, "ParryLeftStart": 38, "FallLoop": 46,
    }  # fmt: skip


def test_labels_the_rules_show(tables):
    const = tables["constants"]
    shown = (
        "idle_animation",
        "walk_animation",
        "roll_animation",
        "roll_again_animation",
        "stop_animation",
        "fall_start_animation",
        "boss_idle_animation",
    )
    assert [int(const[name]) for name in shown] == [17, 18, 21, 22, 23, 43, 23]
    assert list(const["flinch_animations"]) == [3, 2, 4, 1]


def test_label_of_a_standing_boss_is_that_of_his_own_idle_move(spec):
    packed = pack(with_move(spec, "idle", animation="SABreak"))[0]
    assert packed["constants"]["boss_idle_animation"] == spec.boss_animations.index("SABreak")


def test_times_of_an_unknown_label_lock_nothing(spec, tables):
    assert not tables["timings"][0].any()
    roll = next(label for label in spec.player_animations if label.name == "RollingMedium")
    assert list(tables["timings"][1 + 21]) == [roll.attack_s, roll.roll_s, roll.move_s]


def test_blows_are_rows_in_the_order_of_the_file(spec, tables):
    index = spec.boss.move_index("ground_stab")
    row, hits = tables["boss_moves"][index], spec.boss.moves[index].hits
    rows = tables["hits"][row["first_hit"] : row["first_hit"] + row["hits"]]
    assert len(rows) == len(hits) > 1
    assert list(rows["from_s"]) == [hit.from_s for hit in hits]
    assert (row["hits_from_s"], row["hits_to_s"]) == (hits[0].from_s, hits[-1].to_s)
    names = [move.name for move in spec.player.moves]
    assert [names[reaction] for reaction in rows["reaction"]] == [hit.reaction for hit in hits]


def with_player_move(spec, name, **changes):
    moves = tuple(replace(move, **changes) if move.name == name else move for move in spec.player.moves)
    return replace(spec, player=replace(spec.player, moves=moves))


def player_row(spec, packed, name):
    return packed["player_moves"][[move.name for move in spec.player.moves].index(name)]


def test_strikes_are_rows_in_the_order_of_the_file(spec):
    strikes = (
        Strike("first", 0.1, 0.2, 2.0, 90.0, Power(damage=50.0), 10.0),
        # 50 against a defence of 100: 19.2/49 * 0.375^2 + 0.1 = 0.1551, of which a thrust gets 0.84 through.
        Strike("second", 0.4, 0.6, 3.0, 45.0, Power(50.0, "thrust"), 0.0),
    )
    changed = with_player_move(spec, "light_1", strikes=strikes)
    packed = pack(changed)[0]
    row = player_row(spec, packed, "light_1")
    rows = packed["strikes"][row["first_strike"] : row["first_strike"] + row["strikes"]]
    assert list(rows["from_s"]) == [0.1, 0.4]
    assert list(rows["to_s"]) == [0.2, 0.6]
    assert list(rows["reach_m"]) == [2.0, 3.0]
    assert rows["arc_rad"] == pytest.approx([math.pi / 2.0, math.pi / 4.0])
    assert rows["damage"] == pytest.approx([50.0, 6.514], abs=1e-3)
    assert list(rows["poise"]) == [10.0, 0.0]
    assert (row["strikes_from_s"], row["strikes_to_s"]) == (0.1, 0.6)


def test_move_without_a_strike_never_lands(spec, tables):
    row = player_row(spec, tables, "parry")
    assert row["strikes"] == 0
    assert row["strikes_from_s"] > 1e6


def test_stamina_is_split_into_equal_parts(spec, tables):
    row = player_row(spec, tables, "riposte")
    assert (row["payments"], row["sp_per_payment"]) == (2, 12.5)
    assert list(row["payment_s"]) == [0.808, 2.651]
    row = player_row(spec, tables, "light_1")
    assert (row["payments"], row["sp_per_payment"], row["payment_s"][0]) == (1, 20.0, 0.453)


def test_length_of_a_reaction_is_what_its_motion_adds_up_to(spec):
    motion = Motion(first_s=0.1, step_s=0.1, forward_m=(-1.0, -2.0), right_m=(4.0,))
    packed = pack(with_player_move(spec, "DamageSmall", motion=motion))[0]
    assert player_row(spec, packed, "DamageSmall")["moved_m"] == pytest.approx(5.0)
    packed = pack(with_player_move(spec, "DamageSmall", motion=None))[0]
    assert player_row(spec, packed, "DamageSmall")["moved_m"] == 0.0


def test_damage_of_a_blow_is_that_against_the_players_defence(spec):
    # Against a defence of 100 an attack of 100 leaves 0.4, of which half is absorbed.
    player = replace(spec.player, defence=Defence(100.0, {"standard": 0.5, "strike": 1.0, "thrust": 1.0}))
    [hit] = spec.boss.moves[spec.boss.move_index("punch")].hits
    changed = with_move(replace(spec, player=player), "punch", hits=(replace(hit, power=Power(100.0, "standard")),))
    packed = pack(changed)[0]
    row = packed["boss_moves"][spec.boss.move_index("punch")]
    assert packed["hits"][row["first_hit"]]["damage"] == pytest.approx(20.0)
    assert packed["hits"][row["first_hit"]]["push_m"] == 1.0


def test_throws_are_rows_in_the_order_of_their_times(spec):
    throws = (Throw(2.0, Power(damage=30.0)), Throw(1.0, Power(damage=10.0)), Throw(1.5, Power(damage=20.0)))
    packed = pack(with_move(spec, "throw", throws=throws))[0]
    row = packed["boss_moves"][spec.boss.move_index("throw")]
    rows = packed["throws"][row["first_throw"] : row["first_throw"] + row["throws"]]
    assert rows.tolist() == [(1.0, 10.0), (1.5, 20.0), (2.0, 30.0)]


def test_stretches_are_rows(spec, tables):
    row = tables["boss_moves"][spec.boss.move_index("dash")]
    rows = tables["stretches"][row["first_stretch"] : row["first_stretch"] + row["stretches"]]
    assert rows.tolist() == [(0.0, 0.902, 5.75, 5.0, 8.9, 8.9), (0.902, 1.613, 2.75, 3.0, 6.0, 6.0)]
    assert tables["boss_moves"][spec.boss.move_index("sweep")]["stretches"] == 0


def test_decisions(spec, tables):
    first = spec.boss.phases[0]
    phase, names = tables["phases"][0], [act.name for act in first.acts]
    assert (phase["rules"], phase["first_rule"]) == (len(first.rules), 0)
    assert tables["phases"][1]["first_rule"] == len(first.rules)
    assert tables["phases"][1]["first_act"] == len(first.acts)
    assert tables["rules"][0]["weights"][TURN_ACT] == first.rules[0].weights["turn"]
    for name, weight in first.rules[-1].weights.items():
        assert tables["rules"][phase["rules"] - 1]["weights"][names.index(name)] == weight
    act = tables["acts"][names.index("punch")]
    chains = tables["chains"][act["first_chain"] : act["first_chain"] + act["chains"]]
    followed = [
        [spec.boss.moves[link].name for link in tables["links"]["move"][chain["first_link"] :][: chain["links"]]]
        for chain in chains
    ]
    assert followed == [[link.move for link in chain.links] for chain in first.acts[names.index("punch")].chains]


def test_what_follows_an_attack(spec, tables):
    first, second = tables["phases"][0], tables["phases"][1]
    assert (first["front_rad"], first["within_gap_m"], first["back_off_s"], first["retreats"]) == (math.pi, 1e6, 0.0, 0)
    assert (second["front_rad"], second["within_gap_m"]) == (pytest.approx(math.pi / 2.0), 25.0)
    assert (second["back_off_m"], second["back_off_s"]) == (1.5, 2.0)
    rows = tables["retreats"][second["first_retreat"] : second["first_retreat"] + second["retreats"]]
    assert rows.tolist() == [(0.0, 2.0, 0.5, 2.0, 3.0), (2.0, 5.0, 0.25, 2.0, 3.0)]


def with_phase(spec, **changes):
    boss = spec.boss
    return replace(spec, boss=replace(boss, phases=(replace(boss.phases[0], **changes), *boss.phases[1:])))


def test_timers_are_counted_within_their_phase(spec):
    rules = spec.boss.phases[0].rules
    waiting = (replace(rules[0], every_s=47.0), rules[1], replace(rules[2], every_s=5.0))
    packed = pack(with_phase(spec, rules=waiting))[0]
    assert packed["rules"]["timer"][:3].tolist() == [0, -1, 1]
    assert packed["rules"]["every_s"][:3].tolist() == [47.0, 0.0, 5.0]


def test_interrupts_have_a_row_for_each_of_their_moves(spec):
    interrupt = Interrupt(moves=("sweep", "chop"), at_s=0.5, bearing_deg=(-30.0, 30.0), gap_m=(3.0, 9.0), act="leap")
    packed = pack(with_phase(spec, interrupts=(interrupt,)))[0]
    counted = packed["boss_moves"]["interrupts"]
    assert counted.sum(axis=0).tolist() == [2, 0, 0, 0]
    assert [spec.boss.moves[move].name for move in np.flatnonzero(counted[:, 0])] == ["sweep", "chop"]
    rows = packed["interrupts"][packed["boss_moves"]["first_interrupt"][counted[:, 0] > 0, 0]]
    assert [spec.boss.moves[move].name for move in rows["move"]] == ["sweep", "chop"]
    assert rows["at_s"].tolist() == [0.5, 0.5]
    assert rows["bearing_hi"] == pytest.approx([math.pi / 6.0] * 2)
    assert rows["gap_lo"].tolist() == [3.0, 3.0]
    assert spec.boss.phases[0].acts[rows["act"][0]].name == "leap"


def test_runs(spec, tables):
    assert (tables["acts"][:16]["run_from_m"] == 1e6).all()
    *acts, last = spec.boss.phases[0].acts
    packed = pack(
        with_phase(
            spec, acts=(*acts, replace(last, run=Run(from_m=8.0, chance=0.5, always_from_m=11.0, approach_m=7.0)))
        )
    )[0]
    row = packed["acts"][len(acts)]
    keys = ("run_from_m", "run_chance", "run_always_m", "run_approach_m")
    assert [row[key] for key in keys] == [8.0, 0.5, 11.0, 7.0]


def test_room_of_a_hop_lies_where_it_leads(spec):
    # 3 m back and 4 m to the right: of a room of 10 m that is 6 m and 8 m.
    motion = Motion(first_s=0.1, step_s=0.1, forward_m=(-1.0, -2.0), right_m=(4.0,))
    changed = with_move(spec, "leap", kind="hop", motion=motion, hits=())
    acts = tuple(
        replace(act, room_m=10.0, then={"sweep": 2.0}, then_within_deg=90.0) if act.name == "leap" else act
        for act in spec.boss.phases[0].acts
    )
    packed = pack(with_phase(changed, acts=acts))[0]
    names = [act.name for act in acts]
    row = packed["acts"][names.index("leap")]
    assert (row["has_room"], row["room_forward_m"], row["room_right_m"]) == (1, pytest.approx(-6.0), pytest.approx(8.0))
    assert (row["has_then"], row["then_within_rad"]) == (1, pytest.approx(math.pi / 2.0))
    assert row["then_weights"].tolist() == [2.0 if name == "sweep" else 0.0 for name in names] + [0.0] * (
        MAX_ACTS - len(names)
    )
    assert not packed["acts"][names.index("sweep")]["has_room"]


def test_bearings_of_links_become_radians(spec, tables):
    assert tables["links"][0]["bearing_lo"] == -math.pi
    assert tables["links"][0]["bearing_hi"] == math.pi
    *acts, last = spec.boss.phases[0].acts
    changed = replace(last, chains=(Chain(1.0, (Link("slam", 7.2, (-90.0, 45.0)),)),))
    packed = pack(with_phase(spec, acts=(*acts, changed)))[0]
    link = packed["links"][packed["chains"][packed["acts"][len(acts)]["first_chain"]]["first_link"]]
    assert (link["bearing_lo"], link["bearing_hi"]) == (pytest.approx(-math.pi / 2), pytest.approx(math.pi / 4))


def test_moves_a_boss_may_lack(boss_with):
    def change(content):
        content["move"]["run"] = content["move"]["walk"] | {"source": "guess"}

    changed = boss_with(change)
    const = pack(changed)[0]["constants"]
    assert const["boss_run_move"] == changed.boss.move_index("run")
    assert const["boss_back_move"] == changed.boss.move_index("walk_back")


def test_edges_look_outwards(spec, tables):
    edges = tables["edges"][: tables["constants"]["edge_count"]]
    x, y, _ = spec.arena.player_start
    assert np.hypot(edges["normal_x"], edges["normal_y"]) == pytest.approx(1.0)
    assert (edges["offset"] - edges["normal_x"] * x - edges["normal_y"] * y > 0.0).all()
    assert list(edges["cliff"]) == [corner.to_next == "cliff" for corner in spec.arena.corners]


def test_kinds_are_numbers(spec, tables):
    for index, move in enumerate(spec.boss.moves):
        assert MOVE_KINDS[tables["boss_moves"][index]["kind"]] == move.kind


def refused(spec):
    with pytest.raises(DataError) as caught:
        pack(spec)
    assert "is too much for the simulator, which has room for" in caught.value.reason
    assert caught.value.file in map(str, spec.files[:2])
    return caught.value.key, caught.value.value


def test_too_many_acts(spec):
    boss = spec.boss
    first = replace(boss.phases[0], acts=boss.phases[0].acts * 3)
    changed = replace(spec, boss=replace(boss, phases=(first, *boss.phases[1:])))
    assert refused(changed) == ("phase.1.act", len(first.acts))


def test_too_many_blows_of_a_move(spec):
    [hit] = spec.boss.moves[spec.boss.move_index("punch")].hits
    assert refused(with_move(spec, "punch", hits=(hit,) * (MAX_HITS + 1))) == ("move.punch.hit", MAX_HITS + 1)


def test_too_many_blows_of_the_player(spec):
    [strike] = next(move for move in spec.player.moves if move.name == "light_1").strikes
    changed = with_player_move(spec, "light_1", strikes=(strike,) * (MAX_HITS + 1))
    assert refused(changed) == ("move.light_1.strike", MAX_HITS + 1)


def test_rules_that_share_a_timer(spec):
    rules = spec.boss.phases[0].rules
    waiting = (*(replace(rule, every_s=47.0, timer="both") for rule in rules[:2]), replace(rules[2], every_s=5.0))
    packed = pack(with_phase(spec, rules=(*waiting, *rules[3:])))[0]
    assert packed["rules"]["timer"][:4].tolist() == [0, 0, 1, -1]


def test_too_many_timers(spec):
    rules = tuple(replace(rule, every_s=9.0) for rule in spec.boss.phases[0].rules[: MAX_TIMERS + 1])
    assert refused(with_phase(spec, rules=rules)) == ("phase.1.rule (with every_s)", MAX_TIMERS + 1)
    pack(with_phase(spec, rules=rules[:-1]))


def test_too_many_interrupts_of_a_move(spec):
    interrupt = Interrupt(moves=("sweep", "chop"), at_s=0.5, bearing_deg=(-30.0, 30.0), gap_m=(3.0, 9.0), act="leap")
    interrupts = (interrupt,) * (MAX_INTERRUPTS + 1)
    assert refused(with_phase(spec, interrupts=interrupts)) == ("phase.1.interrupt (of one move)", MAX_INTERRUPTS + 1)
    pack(with_phase(spec, interrupts=interrupts[:-1]))


def test_too_many_moves_that_a_rule_follows(spec):
    first, *rest = spec.boss.phases[0].rules
    rules = (replace(first, after=("sweep",) * (MAX_AFTER + 1)), *rest)
    assert refused(with_phase(spec, rules=rules)) == ("phase.1.rule (after)", MAX_AFTER + 1)


def test_too_many_rows_of_a_table(spec):
    arena = spec.arena
    starts = replace(spec, arena=replace(arena, player_starts=arena.player_starts * 20))
    assert refused(starts) == ("starts", 1 + 20 * len(arena.player_starts))
    labels = replace(spec, player_animations=spec.player_animations * 3)
    assert refused(labels) == ("timings", 151)


def test_too_many_follow_ups(spec):
    boss = spec.boss
    *acts, last = boss.phases[0].acts
    acts.append(replace(last, chains=(Chain(1.0, last.chains[0].links * 300),)))
    changed = replace(spec, boss=replace(boss, phases=(replace(boss.phases[0], acts=tuple(acts)), *boss.phases[1:])))
    assert refused(changed)[0] == "links"


def test_moves_that_last_too_long_together(spec):
    moves = tuple(replace(move, end_s=60.0) for move in spec.boss.moves)
    assert refused(replace(spec, boss=replace(spec.boss, moves=moves)))[0] == "boss_curves"
