"""What takes time: sleeping by play time, dying and coming back, turning the camera. Each has a limit."""

import math

import pytest
from title_kit import CameraKeys, FakeTime

from soulsgym.errors import GameGone, GameHung, MisuseError, ReadFailed, StageFailed
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.titles import DarkSoulsIII

# ---- sleep


def run_game(souls, passing, clock, pace=1.0):
    """Let play time pass with the world's, at the clock's speed."""
    exact = [float(souls.get("Time"))]

    def tick(seconds):
        exact[0] += seconds * 1000 * clock.speed * pace
        souls.set(Time=int(exact[0]))

    passing.each = tick


@pytest.mark.parametrize("speed", [0.5, 1.0, 3.0])
def test_sleep_lets_play_time_pass_at_any_speed(game, souls, clock, passing, speed):
    clock.speed = speed
    run_game(souls, passing, clock)
    start = game.time
    game.sleep(1.2)
    assert 1.2 <= (game.time - start) / 1000 < 1.2 + 0.02 * speed
    assert passing.seconds == pytest.approx(1.2 / speed, abs=0.02)


def test_sleep_does_not_burn_a_processor(game, souls, clock, passing):
    run_game(souls, passing, clock)
    game.sleep(10.0)
    assert passing.sleeps < 50


def test_sleep_ends_if_the_game_hangs(game):
    with pytest.raises(GameHung, match=r"1\.5 s of play time did not pass within 11 s"):
        game.sleep(1.5)


def test_a_slow_game_has_not_hung(game, souls, clock, passing):
    run_game(souls, passing, clock, pace=0.3)
    game.sleep(2.0)


def test_sleep_while_paused_is_refused_at_once(game, clock, passing):
    clock.speed = 0.0
    with pytest.raises(MisuseError, match="paused"):
        game.sleep(0.1)
    assert passing.seconds == 0.0


def test_sleep_survives_a_play_time_that_is_set_back(game, souls, clock, passing):
    run_game(souls, passing, clock)
    inner, done = passing.each, []

    def set_back(seconds):
        inner(seconds)
        if not done:
            done.append(1)
            souls.set(Time=0)
            run_game(souls, passing, clock)

    passing.each = set_back
    game.sleep(1.0)
    assert passing.seconds < 2.0


def test_timed_is_in_seconds_and_knows_a_time_that_was_set_back():
    assert DarkSoulsIII.timed(3500, 1000) == 2.5
    assert DarkSoulsIII.timed(400, 1_000_000) == 0.4


# ---- reload


class Respawning:
    """Lets the knight die and come back as the game does, by what passes of the world's time."""

    def __init__(self, souls, passing, *, dies=True, loads=True, comes_back=True, rises=True, moves=True):
        self.souls, self.moves = souls, moves
        self.dies, self.loads, self.comes_back, self.rises = dies, loads, comes_back, rises
        self.dead_s, self.stage, self.flags_at_death = 0.0, "alive", None
        passing.each = self.step

    def step(self, seconds):
        souls = self.souls
        if self.stage == "alive" and souls.get("PlayerHP") <= 0 and self.dies:
            allowed = not souls.get("PlayerNoDeath") and not souls.get("AllNoDeath")
            self.flags_at_death = (souls.get("PlayerNoDeath"), souls.get("AllNoDeath"))
            self.stage = "dying" if allowed else "alive"
            souls.set(PlayerAnimation="DeathStart" if allowed else "Idle")
        if self.stage == "alive":
            return
        self.dead_s += seconds
        if self.stage == "dying" and self.dead_s > 2.0 and self.loads:
            self.stage = "loading"
            self.mend = souls.cut("PlayerHP", 1)
        elif self.stage == "loading" and self.dead_s > 6.0 and self.comes_back:
            self.stage = "rising"
            self.mend()
            if self.moves:
                souls.move("PlayerHP", 1)
            souls.set(PlayerHP=454, PlayerAnimation="Event63000", AllNoHit=0, PlayerNoDeath=0)
        elif self.stage == "rising" and self.dead_s > 9.0 and self.rises:
            self.stage = "stands"
            souls.set(PlayerAnimation="Idle")


@pytest.mark.parametrize("moves", [True, False])
def test_reload_waits_for_death_loading_and_standing(game, souls, passing, moves):
    respawning = Respawning(souls, passing, moves=moves)
    game.reload()
    assert respawning.stage == "stands"
    assert (game.player_hp, game.player_animation) == (454, "Idle")
    assert passing.seconds < 12.0


def test_reload_lets_the_player_die_and_restores_every_flag(game, souls, passing):
    souls.set(PlayerNoDeath=1, AllNoDeath=1, AllNoHit=1, LockOnBonusRange=20.0)
    respawning = Respawning(souls, passing)
    game.reload()
    assert respawning.flags_at_death == (0, 0)
    assert [souls.get(name) for name in ("PlayerNoDeath", "AllNoDeath", "AllNoHit")] == [1, 1, 1]
    assert souls.get("LockOnBonusRange") == 20.0


def test_reload_is_not_fooled_by_a_player_who_stands_idle_before_he_dies(game, souls, passing):
    """The game may take a while to notice that HP is 0, and until then he stands there."""
    late = Respawning(souls, passing, dies=False)
    inner = passing.each

    def notice(seconds):
        late.dies = passing.seconds > 3.0
        inner(seconds)

    passing.each = notice
    game.reload()
    assert late.stage == "stands"


def test_reload_lets_a_player_without_health_die_whom_the_flags_keep_alive(game, souls, passing):
    souls.set(PlayerHP=0, PlayerNoDeath=1, AllNoDeath=1)
    respawning = Respawning(souls, passing)
    game.reload()
    assert respawning.stage == "stands"
    assert respawning.flags_at_death == (0, 0)


def test_reload_resumes_a_paused_game(game, souls, passing, clock):
    clock.speed = 0.0
    Respawning(souls, passing)
    game.reload()
    assert clock.speeds == [1.0]


def test_reload_keeps_the_speed_of_a_running_game(game, souls, passing, clock):
    clock.speed = 3.0
    Respawning(souls, passing)
    game.reload()
    assert clock.speeds == []


@pytest.mark.parametrize(
    ("missing", "complaint"),
    [
        ("dies", "reload: the player does not die"),
        ("loads", "reload: the player does not die"),
        ("comes_back", "reload: the player does not come back after his death"),
        ("rises", "reload: the player does not come back after his death"),
    ],
)
def test_a_reload_that_gets_nowhere_ends_with_a_name_and_restored_flags(game, souls, passing, missing, complaint):
    souls.set(AllNoDeath=1)
    Respawning(souls, passing, **{missing: False})
    with pytest.raises(StageFailed, match=complaint):
        game.reload()
    assert passing.seconds < 200.0
    assert souls.get("AllNoDeath") == 1


def test_a_game_that_ends_during_a_reload_is_gone(game, souls, passing):
    def end(seconds):
        souls.process.gone = True

    passing.each = end
    with pytest.raises(GameGone):
        game.reload()


def test_reload_out_of_game_is_a_failed_read(game, souls):
    souls.cut("PlayerHP", 0)
    with pytest.raises(ReadFailed, match="not in game"):
        game.reload()


def test_die_takes_all_hp_whatever_forbids_it(game, souls):
    souls.set(PlayerNoDeath=1, AllNoDeath=1)
    game.die()
    assert [souls.get(name) for name in ("PlayerHP", "PlayerNoDeath", "AllNoDeath")] == [0, 0, 0]


# ---- camera


@pytest.fixture
def filming(souls, clock):
    def make(**settings):
        keys = CameraKeys(souls, **settings)
        game = DarkSoulsIII(
            ProcessMemory(souls.process), keyboard=keys.keyboard(), clock=clock, time_source=FakeTime(keys.pass_time)
        )
        return game, keys

    return make


DIRECTIONS = [
    (0.0, 1.0, -0.25),
    (1.0, 0.0, 0.0),
    (-1.0, -0.2, 0.4),
    (0.1, -1.0, -0.6),
    (3.0, 3.0, 0.0),
    (0.0, -1.0, 0.0),
]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("reversed_axes", [(1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)])
def test_the_camera_is_turned_by_its_keys_even_if_axes_are_reversed(filming, direction, reversed_axes):
    game, keys = filming(reversed_axes=reversed_axes)
    game.camera_pose = direction
    seen, wanted = game.camera_pose[3:], [number / math.hypot(*direction) for number in direction]
    assert abs(math.remainder(math.atan2(seen[0], seen[1]) - math.atan2(wanted[0], wanted[1]), math.tau)) <= 0.051
    assert abs(seen[2] - wanted[2]) <= 0.051
    assert keys.down == set()


def test_a_camera_that_looks_there_already_needs_no_key(filming):
    game, keys = filming()
    game.camera_pose = tuple(game.camera_pose[3:])
    assert keys.presses == 0


def test_the_camera_is_turned_at_other_speeds(filming, clock, souls):
    for speed in (0.5, 3.0):
        clock.speed = speed
        keys = CameraKeys(souls)
        game = DarkSoulsIII(
            ProcessMemory(souls.process),
            keyboard=keys.keyboard(),
            clock=clock,
            time_source=FakeTime(lambda seconds, keys=keys, speed=speed: keys.pass_time(seconds * speed)),
        )
        game.camera_pose = (0.0, -1.0, 0.2)
        assert abs(game.camera_pose[5] - 0.2 / math.hypot(1.0, 0.2)) < 0.051
        game.camera_pose = (0.0, 1.0, 0.0)


def test_a_fast_game_sees_its_camera_keys_for_a_frame_too(souls, clock):
    clock.speed, pulses = 3.0, []
    keys = CameraKeys(souls)

    def pass_time(seconds):
        if keys.down:
            pulses.append(seconds)
        keys.pass_time(seconds * clock.speed)

    game = DarkSoulsIII(
        ProcessMemory(souls.process), keyboard=keys.keyboard(), clock=clock, time_source=FakeTime(pass_time)
    )
    game.camera_pose = (0.0, -1.0, 0.2)
    assert pulses
    assert min(pulses) >= 0.025


def test_other_keys_that_are_held_stay_held(filming):
    game, keys = filming()
    game.keyboard.press("forward")
    game.camera_pose = (1.0, 0.0, 0.0)
    assert keys.down == {"W"}


def test_a_camera_that_does_not_turn_is_a_named_failure_and_keys_are_up(filming):
    game, keys = filming()
    keys.stuck = True
    with pytest.raises(StageFailed, match="camera: it does not turn there"):
        game.camera_pose = (0.0, -1.0, 0.0)
    assert keys.down == set()


def test_keys_are_up_if_something_fails_in_the_middle(filming, souls):
    game, keys = filming()

    def fail(seconds):
        raise KeyboardInterrupt

    game._time.each = fail
    with pytest.raises(KeyboardInterrupt):
        game.camera_pose = (0.0, -1.0, 0.0)
    assert keys.down == set()


def test_the_camera_of_a_paused_game_is_refused_at_once(filming, clock):
    game, keys = filming()
    clock.speed = 0.0
    with pytest.raises(MisuseError, match="paused"):
        game.camera_pose = (0.0, -1.0, 0.0)
    assert keys.presses == 0


@pytest.mark.parametrize("direction", [(0.0, 0.0, 0.0), (1.0, 2.0), (math.nan, 0.0, 1.0), (1, 2, 3, 4, 5, 6)])
def test_a_direction_that_is_none_is_refused(filming, direction):
    game, keys = filming()
    with pytest.raises(MisuseError, match="camera"):
        game.camera_pose = direction
    assert keys.presses == 0


def test_without_keys_the_camera_cannot_be_turned(game):
    with pytest.raises(MisuseError, match="no keyboard"):
        game.camera_pose = (0.0, -1.0, 0.0)
