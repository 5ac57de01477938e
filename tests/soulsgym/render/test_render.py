"""The picture of a fight."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, ACTION_NAMES, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.errors import MissingPackage, MisuseError
from soulsgym.render import FightRenderer
from soulsgym.render.areas import Pose, area_of_blade, area_of_hit, area_of_strike, lane, sector, stand_at_hit, travel
from soulsgym.render.canvas import View
from soulsgym.render.history import History
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.spec.boss import Motion, Stretch
from soulsgym.state import FIGHT, Outcome

SIZE = (640, 480)
MIDDLE = (140.0, 590.0)


@pytest.fixture(scope="module")
def spec():
    return load_fight("iudex")


@pytest.fixture
def renderer(spec):
    made = FightRenderer(spec, SIZE, fps=1000.0)
    yield made
    made.close()


def fight_of(spec, boss_move="idle", boss_move_s=0.0, *, step=10, player=(140.0, 584.0, math.pi), **fields):
    """A boss in the middle that looks along -y, and the player six metres ahead of it."""
    fight = np.zeros(1, FIGHT)
    fight["phase"], fight["lock_on"] = 1, 1
    fight["player_hp"] = fight["player_max_hp"] = spec.player.hp
    fight["player_sp"] = fight["player_max_sp"] = spec.player.sp
    fight["boss_hp"] = fight["boss_max_hp"] = spec.boss.hp
    fight["boss_pose"] = (*MIDDLE, -69.0, 0.0)
    fight["player_pose"] = (player[0], player[1], -69.0, player[2])
    fight["camera_pose"] = (player[0], player[1] - 3.6, -67.0, 0.0, 0.98, -0.16)
    fight["boss_move"], fight["boss_move_s"] = spec.boss.move_index(boss_move), boss_move_s
    fight["boss_animation"] = fight["player_animation"] = -1
    for name in ("hit_by", "landed", "dodged", "killed_by", "player_move"):
        fight[name] = -1
    fight["step"], fight["time_s"] = step, step * 0.1
    for name, value in fields.items():
        fight[name] = value
    return fight[0]


def colour_at(renderer, picture, x_m, y_m):
    x, y = renderer.to_px(x_m, y_m)
    return picture[round(y), round(x)].astype(int)


def redness(renderer, picture, x_m, y_m):
    red, green, blue = colour_at(renderer, picture, x_m, y_m)
    return red - (green + blue) / 2


def test_draws_an_rgb_array(renderer, spec):
    picture = renderer.draw(fight_of(spec), ACTION_CONTROLS[NOTHING])
    assert picture.shape == (480, 640, 3)
    assert picture.dtype == np.uint8
    assert picture.std() > 10.0


def test_default_size(spec):
    assert FightRenderer(spec).draw(fight_of(spec)).shape == (720, 960, 3)


def test_drawing_opens_no_display(renderer, spec):
    import pygame

    pygame.display.quit()
    renderer.draw(fight_of(spec))
    assert not pygame.display.get_init()


def test_picture_is_the_callers_own(renderer, spec):
    first = renderer.draw(fight_of(spec))
    kept = first.copy()
    renderer.draw(fight_of(spec, "leap", 2.1, step=11))
    assert (first == kept).all()


def test_same_record_gives_the_same_picture(renderer, spec):
    renderer.draw(fight_of(spec, step=9))
    fight = fight_of(spec, step=10, player=(141.0, 583.0, math.pi))
    assert (renderer.draw(fight) == renderer.draw(fight)).all()


@pytest.mark.parametrize(
    "change",
    [
        {"player": (141.0, 584.0, math.pi)},
        {"player": (140.0, 584.0, 1.0)},
        {"boss_hp": 400.0},
        {"player_hp": 10.0},
        {"player_sp": -20.0},
        {"invulnerable": 1},
        {"phase": 2},
        {"damage_taken": 119.0},
        {"damage_dealt": 52.0},
        {"dodged": 8},
        {"boss_animation": 3},
        {"player_animation": 21},
        {"player_animation_duration": 0.5},
        {"step": 12},
        {"lock_on": 0},
        {"player_move": -3, "player_move_s": 0.8},
        {"outcome": Outcome.WON},
        {"outcome": Outcome.DIED},
        {"outcome": Outcome.FELL},
    ],
    ids=str,
)
def test_picture_changes_when_the_fight_does(spec, change):
    before = FightRenderer(spec, SIZE).draw(fight_of(spec))
    after = FightRenderer(spec, SIZE).draw(fight_of(spec, **change))
    assert (before != after).any()


def test_shows_what_was_pressed(spec):
    fight = fight_of(spec)
    pictures = {FightRenderer(spec, SIZE).draw(fight, control).tobytes() for control in ACTION_CONTROLS}
    assert len(pictures) == len(ACTION_NAMES)


def test_blow_lights_its_area_only_while_it_lands(renderer, spec):
    # The thrust reaches 2.0 to 4.9 m ahead, that is down to y = 585.1.
    hit = spec.boss.moves[spec.boss.move_index("thrust")].hits[0]
    ahead, beside, behind = (140.3, 586.5), (142.5, 586.5), (140.3, 593.5)
    dark = renderer.draw(fight_of(spec, "thrust", 0.1, step=1))
    coming = renderer.draw(fight_of(spec, "thrust", hit.from_s - 0.2, step=1))
    lit = renderer.draw(fight_of(spec, "thrust", (hit.from_s + hit.to_s) / 2, step=1))
    over = renderer.draw(fight_of(spec, "thrust", hit.to_s + 0.2, step=1))
    assert redness(renderer, lit, *ahead) > 100 > redness(renderer, coming, *ahead) > 20
    assert abs(redness(renderer, dark, *ahead)) < 10
    assert abs(redness(renderer, over, *ahead)) < 10
    for place in (beside, behind):
        assert abs(redness(renderer, lit, *place)) < 10


def swinging(spec, **blow):
    """The fight with another swing."""
    moves = [
        replace(move, hits=tuple(replace(hit, **blow) for hit in move.hits)) if move.name == "swing" else move
        for move in spec.boss.moves
    ]
    return replace(spec, boss=replace(spec.boss, moves=tuple(moves)))


def place_at(bearing_deg, away_m=2.9):
    """A place seen from the boss, whose right is -x since it looks along -y."""
    bearing = math.radians(bearing_deg)
    return MIDDLE[0] - away_m * math.sin(bearing), MIDDLE[1] - away_m * math.cos(bearing)


def test_sweep_is_lit_where_the_blade_is(spec):
    # From the boss's right to its left in 0.26 s: the blade has come from 90 degrees to 83 after 0.01 s.
    swing = swinging(spec, from_s=1.5, to_s=1.76, arc_deg=(90.0, -90.0), blade_deg=20.0)
    renderer, right, left = FightRenderer(swing, SIZE), place_at(74.0), place_at(-74.0)
    start = renderer.draw(fight_of(swing, "swing", 1.51, step=1))
    assert redness(renderer, start, *right) > 100 > 60 > redness(renderer, start, *left)
    end = renderer.draw(fight_of(swing, "swing", 1.76, step=1))
    assert redness(renderer, end, *left) > 100 > 60 > redness(renderer, end, *right)


@pytest.mark.parametrize("arc_deg", [(180.0, -180.0), (-150.0, 150.0), (300.0, -300.0)])
def test_a_sweep_wider_than_a_full_turn_has_no_gap(spec, arc_deg):
    swing = swinging(spec, from_s=1.5, to_s=1.76, arc_deg=arc_deg, blade_deg=37.0)
    renderer = FightRenderer(swing, SIZE)
    for at_s, least in ((1.45, 50), (1.6, 20)):
        picture = renderer.draw(fight_of(swing, "swing", at_s, step=1))
        for bearing_deg in range(-180, 180, 15):
            assert redness(renderer, picture, *place_at(bearing_deg)) > least, bearing_deg


def test_blow_is_lit_when_the_next_move_began_in_the_same_step(renderer, spec):
    hit = spec.boss.moves[spec.boss.move_index("thrust")].hits[0]
    renderer.draw(fight_of(spec, "thrust", hit.from_s - 0.01, step=1))
    lit = renderer.draw(fight_of(spec, "swing", 0.02, step=2))
    assert redness(renderer, lit, 140.3, 586.5) > 100
    assert redness(renderer, renderer.draw(fight_of(spec, "swing", 0.12, step=3)), 140.3, 586.5) < 10


def test_players_strike_is_lit(renderer, spec):
    names = [move.name for move in spec.player.moves]
    [strike] = spec.player.moves[names.index("light_1")].strikes
    quiet = renderer.draw(fight_of(spec, step=1))
    swung = {"player_move": names.index("light_1"), "player_move_s": strike.from_s + 0.01}
    lit = renderer.draw(fight_of(spec, step=1, **swung))
    place = (140.3, 585.6)
    assert colour_at(renderer, lit, *place)[2] > colour_at(renderer, quiet, *place)[2] + 50


def test_blows_of_a_riposte_have_no_area(renderer, spec):
    names = [move.name for move in spec.player.moves]
    first, second = spec.player.moves[names.index("riposte")].strikes
    for at_s in (first.from_s - 0.1, first.from_s + 0.01, second.from_s + 0.01):
        quiet = renderer.draw(fight_of(spec, step=1, player_move=names.index("riposte"), player_move_s=1.5))
        struck = renderer.draw(fight_of(spec, step=1, player_move=names.index("riposte"), player_move_s=at_s))
        for place in ((140.3, 585.6), (140.0, 585.0)):
            assert colour_at(renderer, struck, *place).tolist() == colour_at(renderer, quiet, *place).tolist()


def test_invulnerable_player_has_a_green_halo(renderer, spec):
    picture = renderer.draw(fight_of(spec, invulnerable=1))
    red, green, blue = colour_at(renderer, picture, 139.2, 584.0)
    assert green > red + 20
    assert green > blue + 20


def test_follows_the_fight_from_start_to_end(spec):
    renderer = FightRenderer(spec, SIZE)
    engine = SimEngine(spec, phase=1, changes=True)
    engine.reset(np.ones(1, bool), standard_starts(1), np.array([3], np.uint64))
    rng = np.random.default_rng(0)
    for _ in range(300):
        controls = ACTION_CONTROLS[rng.integers(0, 20, 1)]
        engine.step(controls)
        renderer.draw(engine.fights[0], controls[0])
        for key in ("player_pose", "boss_pose"):
            x, y = renderer.to_px(*engine.fights[0][key][:2].tolist())
            assert 0 <= x < SIZE[0]
            assert 0 <= y < SIZE[1]
    assert engine.fights["step"][0] > 20


def test_every_blow_that_hits_lies_in_a_lit_area(spec):
    n, checked = 64, 0
    engine = SimEngine(spec, n, changes=True)
    engine.reset(np.ones(n, bool), standard_starts(n), np.arange(n, dtype=np.uint64))
    histories = [History(spec) for _ in range(n)]
    walk = ACTION_CONTROLS[np.zeros(n, int)]
    for _ in range(250):
        for history, fight in zip(histories, engine.fights, strict=True):
            history.notice(fight)
            checked += assert_hit_is_lit(spec, history, fight)
        engine.step(walk)
    assert checked > 100


def assert_hit_is_lit(spec, history, fight):
    if fight["hit_by"] < 0 or fight["damage_taken"] <= 0 or not spec.boss.moves[fight["hit_by"]].hits:
        return 0
    boss = Pose.of(fight["boss_pose"])
    hits = [
        (hit, span)
        for span in history.spans
        for hit in spec.boss.moves[span.move].hits
        if span.move == fight["hit_by"] and span.meets(hit.from_s, hit.to_s)
    ]
    areas = [
        area_of_blade(hit, boss, span.from_s, span.to_s) if hit.sweep else area_of_hit(hit, boss) for hit, span in hits
    ]
    # Both may have moved on within the step, after the blow.
    assert min(distance_to(area, fight["player_pose"][:2]) for area in areas) < 1.3
    return 1


def distance_to(outline, point):
    """Metres from a point to the area of an outline, 0 inside."""
    a = np.array(outline)
    b = np.roll(a, -1, axis=0)
    share = np.clip(((point - a) * (b - a)).sum(1) / np.maximum(((b - a) ** 2).sum(1), 1e-12), 0.0, 1.0)
    nearest = np.hypot(*(a + share[:, None] * (b - a) - point).T).min()
    crosses = (a[:, 1] > point[1]) != (b[:, 1] > point[1])
    at_x = a[:, 0] + (point[1] - a[:, 1]) / np.where(crosses, b[:, 1] - a[:, 1], 1.0) * (b[:, 0] - a[:, 0])
    return 0.0 if (crosses & (at_x > point[0])).sum() % 2 else nearest


def test_window_shows_without_a_screen(renderer, spec, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    renderer.show(fight_of(spec))
    renderer.show(fight_of(spec, step=11), ACTION_CONTROLS[3])
    import pygame

    shown = pygame.surfarray.array3d(pygame.display.get_surface()).transpose(1, 0, 2)
    assert shown.shape == (480, 640, 3)
    assert shown.std() > 10.0
    renderer.close()
    assert not pygame.display.get_init()
    renderer.close()


def test_user_may_close_the_window(renderer, spec, monkeypatch):
    import pygame

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    renderer.show(fight_of(spec))
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    for step in (11, 12):
        renderer.show(fight_of(spec, step=step))
        assert not pygame.display.get_init()
    assert renderer.draw(fight_of(spec)).any()


def test_window_keeps_its_pace(spec, monkeypatch):
    import time

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    renderer = FightRenderer(spec, SIZE, fps=10.0)
    start = time.perf_counter()
    for step in range(4):
        renderer.show(fight_of(spec, step=step))
    assert time.perf_counter() - start >= 0.25
    renderer.close()


def test_no_screen_is_one_sentence(renderer, spec, monkeypatch):
    import pygame

    pygame.display.quit()
    monkeypatch.setenv("SDL_VIDEODRIVER", "there_is_none")
    with pytest.raises(MisuseError, match=r"no window can be opened .*rgb_array"):
        renderer.show(fight_of(spec))


def test_missing_pygame_is_one_sentence(spec, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(MissingPackage, match=r"pygame-ce is not installed; run: pip install '[\w-]+\[render\]'"):
        FightRenderer(spec)


def test_too_small_is_refused(spec):
    with pytest.raises(MisuseError, match=r"\(100, 100\) is too small"):
        FightRenderer(spec, (100, 100))


def test_bearings_grow_to_the_right():
    # Looking along -y with x to the right: one's right hand is at -x.
    stand = Pose(0.0, 0.0, 0.0)
    assert stand.towards(0.0, 2.0) == pytest.approx((0.0, -2.0))
    assert stand.towards(math.pi / 2, 2.0) == pytest.approx((-2.0, 0.0))
    assert stand.offset(1.0, 2.0) == pytest.approx((-2.0, -1.0))
    assert Pose(0.0, 0.0, math.pi / 2).offset(1.0, 2.0) == pytest.approx((-1.0, 2.0))


def test_areas():
    stand = Pose(0.0, 0.0, 0.0)
    quarter = sector(stand, 0.0, 90.0, 2.0)
    assert distance_to(quarter, np.array((-1.0, -1.0))) == 0.0
    assert distance_to(quarter, np.array((1.0, -1.0))) == pytest.approx(1.0)
    ring = sector(stand, -45.0, 45.0, 3.0, 2.0)
    assert distance_to(ring, np.array((0.0, -1.0))) == pytest.approx(1.0, abs=0.01)
    strip = lane(stand, 1.0, 5.0, 2.0)
    assert distance_to(strip, np.array((0.9, -4.0))) == 0.0
    assert distance_to(strip, np.array((1.5, -4.0))) == pytest.approx(0.5)


def test_strike_area_is_the_reach_on_both_sides(spec):
    [strike] = next(move.strikes for move in spec.player.moves if move.name == "light_1")
    area = area_of_strike(strike, Pose(0.0, 0.0, 0.0))
    assert max(math.hypot(x, y) for x, y in area) == pytest.approx(strike.reach_m)
    assert max(x for x, _ in area) == pytest.approx(strike.reach_m * math.sin(math.radians(strike.arc_deg)))


def test_travel_sums_the_samples(spec):
    plain = spec.boss.moves[spec.boss.move_index("thrust")]
    assert plain.stretches == ()
    # Samples end at 0.1, 0.3, 0.5: half of the second and all of the third lie between 0.2 and 0.6.
    motion = Motion(first_s=0.1, step_s=0.2, forward_m=(1.0, 2.0, 3.0), right_m=(0.0, -1.0))
    assert travel(plain, motion, 0.2, 0.6, 9.0) == pytest.approx((4.0, -0.5))
    # Half of the distance, then half of the rest.
    chase = Motion(first_s=0.1, step_s=0.1, forward_m=(), right_m=(), chase_share=(0.5, 0.5))
    assert travel(plain, chase, 0.0, 1.0, 8.0) == pytest.approx((6.0, 0.0))


def test_travel_of_a_stretch_depends_on_the_distance(spec):
    # Four metres in two samples, stretched to arrive 2 m before the player, but by at least 1 m and at most 8 m.
    motion = Motion(first_s=0.1, step_s=0.1, forward_m=(2.0, 2.0), right_m=())
    stretch = Stretch(from_s=0.0, to_s=0.2, arrive_m=2.0, range_m=(1.0, 8.0), reference_m=4.0)
    move = replace(spec.boss.moves[0], stretches=(stretch,))
    assert travel(move, motion, 0.0, 0.2, 5.0)[0] == pytest.approx(3.0)
    assert travel(move, motion, 0.0, 0.2, 2.5)[0] == pytest.approx(1.0)
    assert travel(move, motion, 0.0, 0.2, 99.0)[0] == pytest.approx(8.0)
    # Half way through, 1.5 of the 3 metres are left, and the player is 3.5 m away.
    assert travel(move, motion, 0.1, 0.2, 3.5)[0] == pytest.approx(1.5)
    # After it the motion is that of the file; what lies before it brings the boss nearer.
    late = replace(move, stretches=(replace(stretch, from_s=0.1, reference_m=2.0),))
    assert travel(late, motion, 0.0, 0.2, 7.0)[0] == pytest.approx(2.0 + 3.0)


def test_a_dash_is_drawn_where_it_arrives(spec):
    """Fights of the simulator in which the boss dashes at a player who stands still."""
    dash = spec.boss.move_index("dash")
    move, n = spec.boss.moves[dash], 64
    hit = move.hits[0]
    engine = SimEngine(spec, n)
    engine.reset(np.ones(n, bool), standard_starts(n), np.arange(n, dtype=np.uint64))
    foreseen, apart_m = {}, []
    for _ in range(80):
        engine.step(ACTION_CONTROLS[np.full(n, NOTHING)])
        for i in np.flatnonzero(engine.fights["boss_move"] == dash).tolist():
            fight = engine.fights[i]
            boss, left_s = Pose.of(fight["boss_pose"]), hit.from_s - float(fight["boss_move_s"])
            if 0.3 < left_s < 0.6:
                player = Pose.of(fight["player_pose"]).at
                foreseen[i] = stand_at_hit(move, hit.from_s - left_s, hit, boss, player, 1.25).at
            elif -0.1 < left_s <= 0.0 and i in foreseen:
                apart_m.append(math.dist(foreseen.pop(i), boss.at))
    assert len(apart_m) > 5
    assert np.median(apart_m) < 0.35


def test_leap_is_drawn_where_it_comes_down(spec):
    leap = spec.boss.moves[spec.boss.move_index("leap")]
    landing = stand_at_hit(leap, 1.4, leap.hits[0], Pose(0.0, 0.0, 0.0), (0.0, -8.0), 1.25)
    assert landing.y_m < -5.0
    # The player's body stops it.
    assert landing.y_m >= -8.0 + 1.25 - 1e-9


def test_view_keeps_still_while_it_can(spec):
    view = View(spec.arena, SIZE, top_px=60, bottom_px=90)
    view.jump((140.0, 588.0), (140.0, 592.0))
    before = view.to_px((140.0, 590.0)), view.px_per_m
    view.follow((140.5, 588.0), (140.5, 592.3))
    assert (view.to_px((140.0, 590.0)), view.px_per_m) == before
    for _ in range(100):
        view.follow((125.0, 580.0), (155.0, 605.0))
    settled = view.px_per_m
    assert settled < before[1]
    view.follow((125.0, 580.0), (155.0, 605.0))
    assert view.px_per_m == pytest.approx(settled, rel=1e-3)
    for point in ((125.0, 580.0), (155.0, 605.0)):
        x, y = view.to_px(point)
        assert 0 < x < SIZE[0]
        assert 60 < y < SIZE[1] - 90


def test_pictures_between_steps_lie_on_the_way(spec):
    renderer = FightRenderer(spec, SIZE, words=False)
    before = fight_of(spec, "walk", 0.5, step=1, player=(140.0, 584.0, math.pi - 0.1))
    after = fight_of(spec, "walk", 0.6, step=2, player=(140.4, 584.0, 0.1 - math.pi))
    pictures = [renderer.draw(before), *(renderer.draw(after, share=share) for share in (0.01, 0.5, 1.0))]
    changed = [(picture != pictures[-1]).sum() for picture in pictures]
    assert changed[0] >= changed[1] > changed[2] > changed[3] == 0
    alone = FightRenderer(spec, SIZE, words=False)
    alone.draw(before)
    assert (alone.draw(after) == pictures[-1]).all(), "what was drawn before the record changes nothing"


def test_a_record_between_steps(spec):
    history = History(spec)
    before = fight_of(spec, "walk", 0.5, step=1, player=(140.0, 584.0, math.pi - 0.1), time_s=0.1)
    after = fight_of(spec, "thrust", 0.02, step=2, player=(140.4, 584.0, 0.1 - math.pi), time_s=0.2)
    history.notice(before)
    assert history.at(0.5) == before, "there is nothing before the first record"
    history.notice(after)
    half = history.at(0.5)
    assert half["player_pose"][[0, 1]] == pytest.approx([140.2, 584.0])
    assert math.cos(half["player_pose"][3]) == pytest.approx(-1.0), "the short way round"
    assert half["time_s"] == pytest.approx(0.15)
    assert half["boss_move_s"] == 0.0
    assert history.at(1.0) == after
    history.notice(fight_of(spec, step=5))
    assert history.at(0.5)["step"] == 5
    assert history.before is None, "steps were skipped"


def test_view_between_steps(spec):
    view = View(spec.arena, SIZE)
    view.jump((140.0, 588.0), (140.0, 592.0))
    start = view.to_px((140.0, 590.0))
    view.follow((150.0, 588.0), (150.0, 592.0))
    end = view.to_px((140.0, 590.0))
    assert end[0] < start[0]
    view.show(0.5)
    assert view.to_px((140.0, 590.0)) == pytest.approx([(a + b) / 2 for a, b in zip(start, end, strict=True)])
    view.show(1.0)
    assert view.to_px((140.0, 590.0)) == end
