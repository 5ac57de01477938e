"""The stages that set up a fight: the player comes to a living boss, and both into their places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from soulsgym.errors import FocusLost, GameVersionError, MisuseError, ReadFailed
from soulsgym.game.camera import IN_VIEW, PULSE_S, cosine, view_to_boss
from soulsgym.game.pacing import ACT_SPEEDS

if TYPE_CHECKING:
    from soulsgym.game.reset import Setup, Start
    from soulsgym.game.waits import Waits
    from soulsgym.spec.game import PhaseChange, Pose

TAP_S = 0.15
"""How long a key is held, in the game's seconds."""
POLL_S = 0.01
KEY_EFFECT_S = 1.0
"""A key that does anything has done it by then, in the game's seconds."""
STEADY_LOOKS = 3
VIEW_BEYOND = 0.15
MOVED_M = 0.05
FOG_TRIES = 4
PLAY_TIME_LIMIT_MS = 590 * 3_600_000
"""The game stops counting at 999 hours, and we would with it; its 32 bits turn negative even earlier."""
STUCK_S = 2.5
"""A player who is not in place by then, in real seconds, stands in a wall."""
LOCK_WAIT_S, FOREIGN_LOCK_S = 0.5, 1.5
PRESS_TICKS, PRESS_TRIES, PRESS_S, PRESS_STANDS_S = 6, 3, 0.003, 0.1
"""Ticks and real seconds of a press that is tried while the clock is stepped."""
TRICKLE_S = 2.5
"""While nobody steps for longer, as in a long update of a learner, a tick passes every so often."""
VALUES_S, SHOWN_FAULTS = 3.0, 4

# ---- is a stage needed?


def always(setup: Setup, start: Start) -> bool:
    """This stage is never passed over."""
    return True


def values_are_unsure(setup: Setup, start: Start) -> bool:
    """Has nobody seen yet that what is read can be true?"""
    return not setup.values_hold


def reload_is_due(setup: Setup, start: Start) -> bool:
    """Is there a reason to begin at the bonfire?"""
    return bool(setup.reload_because)


def keys_are_unsure(setup: Setup, start: Start) -> bool:
    """Has nobody seen yet that keys have an effect?"""
    return not setup.keys_work


def is_outside(setup: Setup, start: Start) -> bool:
    """Is the arena still to be entered?"""
    return not setup.in_arena


def weapon_is_unsure(setup: Setup, start: Start) -> bool:
    """Has nobody seen yet that attacks are attacks?"""
    return not setup.weapon_works


def pressing_is_unsure(setup: Setup, start: Start) -> bool:
    """Has nobody seen yet how the game takes keys while its clock is stepped?"""
    return not setup.pressing_works


def phase_is_missing(setup: Setup, start: Start) -> bool:
    """Must the boss be brought into a later phase?"""
    return start.phase > setup.phase


# ---- to the arena


def focus(setup: Setup, start: Start, waits: Waits) -> None:
    """Let go of all keys and get the focus."""
    setup.game.keyboard.release_all()
    setup.game.clock.set_speed(setup.speed)

    def comes() -> bool:
        try:
            setup.game.window.activate()
        except FocusLost:
            return False
        return setup.game.window.has_focus()

    waits.until(comes, "the window does not get the focus; close what covers it or grabs the keyboard", every_s=0.2)


def in_game(setup: Setup, start: Start, waits: Waits) -> None:
    """Get past title screen and loading, by pressing on."""
    title = setup.title

    def loaded() -> bool:
        if title.is_ingame:
            return True
        tap(setup, "interact", waits)
        return title.is_ingame

    waits.until(loaded, "no character is loaded; load one by hand", every_s=0.5, unreadable=True)
    waits.until(lambda: _remember(setup), "the game's flags cannot be read", unreadable=True)


def _remember(setup: Setup) -> bool:
    setup.game.remember()
    return True


def values(setup: Setup, start: Start, waits: Waits) -> None:
    """See that everything read can be true, before the first write."""
    title, window = setup.title, setup.game.window
    _see_plausible(waits, lambda: [*title.faults(window.client_size()), *(title.boss_faults(setup.plan) or ())])
    setup.values_hold = True


def _see_plausible(waits: Waits, look: Callable[[], list[str]]) -> None:
    faults: list[str] = []

    def hold() -> bool:
        faults[:] = look()
        return not faults

    # A moment later it may be true: somebody falls, a screen fades.
    if not waits.comes_true(hold, limit_s=VALUES_S, every_s=0.1, unreadable=True):
        shown = "; ".join(faults[:SHOWN_FAULTS]) or "it cannot be read"
        raise GameVersionError(
            f"nothing is written into the game, as what is read from it cannot be true: {shown}; run souls doctor"
        )


def flags(setup: Setup, start: Start, waits: Waits) -> None:
    """Write what the fight needs of character and world, and note whether that takes a reload."""
    title, plan = setup.title, setup.plan
    title.allow_weapon_durability_dmg = False
    reasons = []
    if not setup.boss.flags:
        setup.boss.flags = True
        reasons.append("the flags of the world were those of another state")
    if tuple(title.player_stats) != plan.attributes:
        title.player_stats = plan.attributes
        reasons.append("the attributes were others")
    if is_dead(setup):
        reasons.append("the player is dead")
    elif setup.training and setup.source.now() - setup.reloaded_at > setup.hard_reset_s:
        reasons.append(f"the last reload was more than {setup.hard_reset_s:g} s ago")
    elif not setup.training and setup.fought and not _came_back(setup):
        reasons.append("the last fight was real")
    elif start.phase < setup.phase:
        reasons.append(f"the boss is past phase {start.phase}")
    elif not (setup.in_arena or setup.at_fog_wall or setup.reload_because) and _is_away(setup):
        reasons.append("the player is not at the bonfire")
    if reasons:
        setup.reload_because = ", ".join(reasons)


def _came_back(setup: Setup) -> bool:
    """Has the game itself brought the player back from his death?"""
    if _is_away(setup) or setup.body().animation != setup.names.idle:
        return False
    setup.in_arena, setup.phase, setup.fought = False, 1, False
    return True


def _is_away(setup: Setup) -> bool:
    return distance(setup.body().pose, setup.plan.bonfire_m) > setup.plan.near.bonfire_m


def reload(setup: Setup, start: Start, waits: Waits) -> None:
    """Die and come back at the bonfire."""
    title, plan = setup.title, setup.plan
    setup.in_arena = setup.at_fog_wall = False
    if title.is_ingame:
        title.last_bonfire = plan.bonfire
    title.allow_moves = title.allow_attacks = title.allow_hits = True
    title.die_and_return(waits)
    away_m = distance(setup.body().pose, plan.bonfire_m)
    if away_m > plan.near.bonfire_m:
        raise waits.failed(
            f"the player came back {away_m:.0f} m from the bonfire {plan.bonfire}; is it lit in this save?"
        )
    setup.phase, setup.fought, setup.reload_because = 1, False, ""
    setup.reloaded_at = setup.source.now()


def menu(setup: Setup, start: Start, waits: Waits) -> None:
    """See that a walking key moves the player; if not, a menu may be open."""
    setup.title.allow_hits = setup.title.allow_attacks = False
    setup.title.allow_moves = True
    if not _walks(setup, waits):
        with suppress(MisuseError):  # not bound to a key
            tap(setup, "menu", waits)
        if not _walks(setup, waits):
            raise waits.failed(
                "the walking key does not move the player; close open menus, and check the key settings and the layout"
            )
    setup.keys_work = True


def _walks(setup: Setup, waits: Waits) -> bool:
    before = setup.body()

    def moved() -> bool:
        now = setup.body()
        walking = now.animation not in (setup.names.idle, before.animation)
        return walking or distance(now.pose, before.pose) > MOVED_M

    setup.game.keyboard.hold(("forward",))
    try:
        return waits.comes_true(moved, limit_s=KEY_EFFECT_S / min(1.0, setup.speed))
    finally:
        setup.game.keyboard.hold(())


def fog_gate(setup: Setup, start: Start, waits: Waits) -> None:
    """Stand before the fog wall, look at it and walk through."""
    title, plan = setup.title, setup.plan
    title.allow_hits = title.allow_attacks = False
    title.allow_moves = True

    def before_wall() -> bool:
        if distance(setup.body().pose, plan.fog_wall) > plan.near.fog_wall_m:
            title.player_pose = plan.fog_wall
            return False
        return True

    steady(
        waits,
        before_wall,
        lambda: f"the player stands {distance(setup.body().pose, plan.fog_wall):.1f} m from the fog wall",
    )
    idle(setup, waits)
    # As far as it goes: the fog wall can be passed without.
    setup.camera.turn(
        setup.game.keyboard, lambda: title.camera_pose[3:], plan.fog_view, waits.sleep, setup.speed, VIEW_BEYOND
    )

    def passed() -> bool:
        body = setup.body()
        there = distance(body.pose, plan.behind_fog_m) <= plan.near.behind_fog_m
        return there and body.animation == setup.names.idle

    for _ in range(1 if setup.at_fog_wall else FOG_TRIES):  # he may have been inside before, then nothing leads in
        tap(setup, "interact", waits)
        begun = waits.comes_true(lambda: setup.body().animation != setup.names.idle, limit_s=KEY_EFFECT_S)
        if waits.comes_true(passed, limit_s=10.0 if begun else 0.1, unreadable=True):
            setup.at_fog_wall = False
            return
    away_m = distance(setup.body().pose, plan.behind_fog_m)
    raise waits.failed(
        f"the interact key does not lead through the fog wall, the player stands {away_m:.1f} m from where he should"
    )


def arena(setup: Setup, start: Start, waits: Waits) -> None:
    """See that both are there and alive, and widen the lock."""
    title, plan = setup.title, setup.plan
    title.allow_hits = title.allow_attacks = False
    waits.until(
        lambda: _both_alive(setup),
        "player and boss cannot be seen alive; is this the boss's place?",
        limit_s=5.0,
        unreadable=True,
    )
    if not setup.boss_holds:
        _see_plausible(waits, lambda: title.boss_faults(plan) or [])
        setup.boss_holds = True
    title.lock_on_bonus_range = plan.lock_on.bonus_range_m
    title.los_lock_on_deactivate_time = plan.lock_on.unseen_s
    setup.in_arena = True
    setup.phase = max(setup.phase, 1)


def _both_alive(setup: Setup) -> bool:
    sight = setup.look()
    return sight.player_hp > 0 and sight.boss_hp > 0


# ---- into their places


def weapon(setup: Setup, start: Start, waits: Waits) -> None:
    """See that the attack key gives an attack that is known; bare hands give others."""
    title = setup.title
    title.allow_hits, title.allow_attacks, title.allow_moves = False, True, True
    known = {one.name for one in setup.plan.player_animations if one.name.startswith(title.weapon_animations)}
    seen = set[str]()

    def attacks() -> bool:
        seen.add(setup.body().animation)
        return bool(known & seen)

    for _ in range(2):
        tap(setup, "lightattack", waits, attacks)
        if waits.comes_true(attacks, limit_s=KEY_EFFECT_S):
            setup.weapon_works = True
            idle(setup, waits)
            return
    shown = ", ".join(sorted(seen))
    raise waits.failed(f"the attack key gave {shown}; {title.weapon_advice}")


def pressing(setup: Setup, start: Start, waits: Waits) -> None:
    """Find out whether keys pressed while the clock stands have an effect; if not, they are pressed while it runs."""
    title, keyboard = setup.title, setup.game.keyboard
    title.allow_hits, title.allow_attacks, title.allow_moves = False, True, True
    idle(setup, waits)
    if setup.pacer is None:
        setup.game.clock.pause()
        setup.notes["loops"] = setup.game.clock.find_loops()
        setup.pacer = setup.choose(setup.game)
    pacer = setup.pacer
    known = {one.name for one in setup.plan.player_animations if one.name.startswith(title.weapon_animations)}

    def is_answered() -> bool:
        seen = set[str]()

        def press() -> None:
            keyboard.press("lightattack")
            # Long enough for a game that uses keys up in frames without time to do so.
            waits.sleep(PRESS_S if pacer.act_speed else PRESS_STANDS_S)

        acts = {0: press, PRESS_TICKS // 2: lambda: keyboard.release("lightattack")}
        pacer.begin()
        for part in (acts, {}):
            pacer.run(PRESS_TICKS, lambda _tick, glance: seen.add(glance.player_animation), part)  # type: ignore[attr-defined]
        setup.game.clock.set_speed(setup.speed)
        idle(setup, waits)
        return bool(known & seen)

    try:
        for pacer.act_speed in (0.0, 0.0, *ACT_SPEEDS, 0.0):  # not answered once may be a busy machine
            # A press that is in time once may be late the next time.
            if all(is_answered() for _ in range(PRESS_TRIES if pacer.act_speed else 1)):
                break
        else:
            raise waits.failed(
                "the attack key has no effect while the clock is stepped, though it has while the game runs"
            )
    finally:
        keyboard.hold(())
        setup.game.clock.set_speed(setup.speed)
    setup.pressing_works = True
    setup.notes["keys_pressed"] = (
        f"while time passes, at speed {pacer.act_speed:g}" if pacer.act_speed else "while the clock stands"
    )


def phase(setup: Setup, start: Start, waits: Waits) -> None:
    """Bring the boss into the wanted phase, one phase after the other."""
    title, boss = setup.title, setup.boss
    for number in range(max(setup.phase, 1) + 1, start.phase + 1):
        later = setup.plan.changes[number - 2]
        title.allow_hits, title.allow_deaths, title.allow_attacks, title.allow_moves = False, False, True, True
        boss.hp = later.boss_hp
        if later.animation:
            _see_through(setup, waits, later, number)
        else:
            waits.sleep(later.begins_within_s / max(setup.speed, 1.0))
        title.allow_attacks = False
        boss.reset_hp()
        setup.phase = number


def _see_through(setup: Setup, waits: Waits, later: PhaseChange, number: int) -> None:
    """Wait until the animation that begins a phase has come and gone."""
    waits.until(
        lambda: setup.look().boss_animation == later.animation,
        f"the boss does not begin phase {number} with {later.boss_hp} health",
        limit_s=later.begins_within_s,
    )
    waits.until(
        lambda: setup.look().boss_animation != later.animation,
        f"the boss does not end {later.animation}",
        limit_s=later.lasts_at_most_s,
    )


def freeze(setup: Setup, start: Start, waits: Waits) -> None:
    """Nobody moves, attacks or is hit until both stand in their places."""
    title = setup.title
    title.allow_attacks = title.allow_hits = title.allow_moves = False
    title.allow_deaths = False
    if not 0 <= title.time < PLAY_TIME_LIMIT_MS:
        title.time = 0


def poses(setup: Setup, start: Start, waits: Waits) -> None:
    """Put player and boss in their places, another one if the player is stuck."""
    _drop_foreign_lock(setup, waits)
    for pose in start.player_poses:
        if _placed(setup, pose, start.boss_pose, waits):
            return
    sight, plan = setup.look(), setup.plan
    player_m = distance(sight.player_pose, start.player_poses[0])
    boss_m = distance(sight.boss_pose, start.boss_pose)
    raise waits.failed(
        f"the player is {player_m:.1f} m off ({sight.player_animation}, {sight.player_hp} health), the boss "
        f"{boss_m:.1f} m off ({sight.boss_animation or 'no animation'}, {sight.boss_hp} health); "
        f"allowed are {plan.near.player_m:g} and {plan.near.boss_m:g} m"
    )


def _drop_foreign_lock(setup: Setup, waits: Waits) -> None:
    """A camera that is locked on somebody else would follow him, and the key would only let go of him later."""
    sight = setup.look()
    if sight.lock_on and cosine(sight.camera_pose[3:], view_to_boss(sight)) <= IN_VIEW:
        tap(setup, "lock_on", waits)
        waits.comes_true(lambda: not setup.title.lock_on, limit_s=LOCK_WAIT_S)


def _placed(setup: Setup, player: Pose, boss: Pose, waits: Waits) -> bool:
    title, plan = setup.title, setup.plan
    near = plan.near

    def in_place() -> bool:
        sight = setup.look()
        player_there = is_at(sight.player_pose, player, near.player_m, near.heading_rad)
        boss_there = is_at(sight.boss_pose, boss, near.boss_m, near.heading_rad)
        if not player_there:
            title.player_pose = player
        if not boss_there:
            setup.boss.pose = boss
        healthy = sight.player_hp >= sight.player_max_hp and sight.boss_hp >= sight.boss_max_hp
        if not healthy:
            title.reset_player_hp()
            setup.boss.reset_hp()
        calm = sight.player_animation == setup.names.idle and plan.is_resting(sight.boss_animation)
        return player_there and boss_there and healthy and calm

    title.player_pose = player
    setup.boss.pose = boss
    title.reset_player_sp()
    title.clear_statuses()
    limit_s = min(STUCK_S, waits.left_s())
    return waits.comes_true(steadily(in_place), limit_s=limit_s)


def lock_on(setup: Setup, start: Start, waits: Waits) -> None:
    """Turn the camera to the boss and lock on. The key is a toggle: it is pressed only while there is no lock."""
    turns_by = setup.source.now() + FOREIGN_LOCK_S
    while waits.left_s() > 0.0:
        sight = setup.look()
        target = view_to_boss(sight)
        if sight.lock_on:
            if cosine(sight.camera_pose[3:], target) > IN_VIEW:
                return
            waits.sleep(POLL_S)
            if setup.source.now() > turns_by:  # it is locked on somebody else
                _drop_foreign_lock(setup, waits)
                turns_by = setup.source.now() + FOREIGN_LOCK_S
        elif cosine(sight.camera_pose[3:], target) > IN_VIEW:
            if not setup.title.lock_on:
                tap(setup, "lock_on", waits)
            waits.comes_true(lambda: setup.title.lock_on, limit_s=LOCK_WAIT_S)
        else:
            # In pulses that a game of 60 frames a second cannot miss.
            setup.game.keyboard.hold(setup.camera.towards(sight.camera_pose[3:], target, VIEW_BEYOND))
            waits.sleep(PULSE_S)
            setup.game.keyboard.hold(())
            waits.sleep(POLL_S)
    sight = setup.look()
    view = cosine(sight.camera_pose[3:], view_to_boss(sight))
    reason = "the lock-on key has no effect" if view > IN_VIEW else "the camera keys do not turn the camera to the boss"
    raise waits.failed(f"{reason}; check the key settings and the keyboard layout")


def ready(setup: Setup, start: Start, waits: Waits) -> None:
    """Stop the clock, put health as wanted and let both go."""
    title, clock = setup.title, setup.game.clock
    setup.game.keyboard.hold(())
    if setup.pacer is None:
        setup.pacer = setup.choose(setup.game)
    else:
        setup.pacer.begin()
    title.reset_player_hp()
    title.reset_player_sp()
    setup.boss.reset_hp()
    if not math.isnan(start.player_sp):
        title.player_sp = int(start.player_sp)
    if not setup.training:
        if not math.isnan(start.player_hp):
            title.player_hp = int(start.player_hp)
        if not math.isnan(start.boss_hp):
            setup.boss.hp = int(start.boss_hp)
    title.allow_weapon_durability_dmg = False  # a reload has allowed it again
    title.allow_deaths = title.allow_player_death = not setup.training
    title.allow_hits = title.allow_attacks = title.allow_moves = True
    sight = setup.look()
    if not sight.lock_on:
        clock.set_speed(setup.speed)
        raise waits.failed("the lock was lost again")
    clock.trickle_after_s = TRICKLE_S
    setup.sight, setup.fought = sight, True


# ---- what stages do with a game


def is_dead(setup: Setup) -> bool:
    """Has the player no health, or cannot be read because the game loads?"""
    try:
        return setup.title.player_hp <= 0
    except ReadFailed:
        return True


def tap(setup: Setup, action: str, waits: Waits, watch: Callable[[], bool] | None = None) -> None:
    """Press a key for a moment of the game's time."""
    keyboard = setup.game.keyboard
    keyboard.press(action)
    try:
        # A prompt such as that of the fog wall wants its key for a while, however fast the game runs.
        held_s = TAP_S if action == "interact" else TAP_S / max(setup.speed, 1.0)
        if watch is None:
            waits.sleep(held_s)
        else:
            waits.comes_true(watch, limit_s=held_s, every_s=POLL_S)
    finally:
        keyboard.release(action)


def idle(setup: Setup, waits: Waits) -> None:
    """Wait until the player stands still."""
    waits.until(lambda: setup.body().animation == setup.names.idle, "the player does not come to rest", limit_s=8.0)


def steady(waits: Waits, condition: Callable[[], bool], failure: Callable[[], str], limit_s: float = 5.0) -> None:
    """Wait until something holds several looks in a row: a teleported player slides or falls first."""
    if not waits.comes_true(steadily(condition), limit_s=limit_s, every_s=POLL_S):
        raise waits.failed(failure())


def steadily(condition: Callable[[], bool]) -> Callable[[], bool]:
    """The same condition, true once it has held several times in a row."""
    looks = 0

    def holds() -> bool:
        nonlocal looks
        looks = looks + 1 if condition() else 0
        return looks >= STEADY_LOOKS

    return holds


def distance(pose: Sequence[float], place: Sequence[float]) -> float:
    """Metres between two places, headings left out."""
    return math.dist(pose[:3], place[:3])


def is_at(pose: Sequence[float], place: Pose, within_m: float, within_rad: float) -> bool:
    """Is somebody at a place, and turned as there?"""
    turned = abs(math.remainder(pose[3] - place[3], 2.0 * math.pi))
    return distance(pose, place) <= within_m and turned <= within_rad
