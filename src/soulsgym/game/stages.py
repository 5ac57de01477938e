"""The stages of setting up a fight: each acts on the game and waits until what it is for holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from soulsgym.errors import FocusLost, MisuseError, ReadFailed
from soulsgym.game.aiming import IN_VIEW, cosine, view_to_boss

if TYPE_CHECKING:
    from soulsgym.game.plan import Pose
    from soulsgym.game.reset import Setup, Start
    from soulsgym.game.waiting import Waits

TAP_S = 0.15
"""How long a key is held, in the game's seconds."""
POLL_S = 0.01
KEY_EFFECT_S = 1.0
"""A key that does anything has done it by then, in the game's seconds."""
MOVED_M = 0.05
PLAY_TIME_LIMIT_MS = 590 * 3_600_000
"""The game stops counting at 999 hours, and we would with it; its 32 bits turn negative even earlier."""
FOG_TRIES = 4
STEADY_LOOKS = 3
STUCK_S = 2.5
"""A player who is not in place by then, in real seconds, stands in a wall."""
VIEW_BEYOND = 0.15
ATTACK_NAMES = "AttackRight"
LOCK_WAIT_S = 0.5


def always(setup: Setup, start: Start) -> bool:
    """This stage is never passed over."""
    return True


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


def phase_is_missing(setup: Setup, start: Start) -> bool:
    """Must the boss be brought into a later phase?"""
    return start.phase > setup.phase


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
        title.clear_cache()
        tap(setup, "interact", waits)
        return bool(title.is_ingame)

    waits.until(loaded, "no character is loaded; load one by hand", every_s=0.5, unreadable=True)
    if setup.saved is None:
        waits.until(lambda: _remember(setup), "the game's flags cannot be read", unreadable=True)


def _remember(setup: Setup) -> bool:
    setup.saved = setup.title.remember()
    return True


def flags(setup: Setup, start: Start, waits: Waits) -> None:
    """Write what the fight needs of character and world, and note whether that takes a reload."""
    title, plan = setup.title, setup.plan
    title.allow_weapon_durability_dmg = False
    reasons = []
    if not getattr(title, f"{plan.boss}_flags"):
        setattr(title, f"{plan.boss}_flags", True)
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
    """Die and come back at the bonfire.

    That the game loads, or what only follows that, must be seen first: a player not yet dead looks like one come back.
    """
    title, plan = setup.title, setup.plan
    setup.in_arena = setup.at_fog_wall = False
    if title.is_ingame:
        title.last_bonfire = plan.bonfire
    title.allow_player_death = title.allow_deaths = True
    title.allow_moves = title.allow_attacks = title.allow_hits = True

    def is_gone() -> bool:
        if not title.is_ingame or title.player_animation == setup.names.rising:
            return True
        if title.player_hp > 0:
            title.die()
        return False

    with suppress(ReadFailed):  # it loads already
        waits.until(is_gone, "the player does not die", limit_s=30.0, every_s=0.02)

    def stands() -> bool:
        if not title.is_ingame:
            title.clear_cache()
            return False
        body = setup.body()
        return body.hp > 0 and body.animation == setup.names.idle

    waits.until(stands, "the player does not come back after his death", every_s=0.05, unreadable=True)
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
    turn_camera(setup, waits, plan.fog_view)

    def passed() -> bool:
        body = setup.body()
        there = distance(body.pose, plan.behind_fog_m) <= plan.near.behind_fog_m
        return there and body.animation == setup.names.idle

    for _ in range(1 if setup.at_fog_wall else FOG_TRIES):  # he may have been inside before, then nothing leads in
        tap(setup, "interact", waits)
        begun = waits.comes_true(lambda: setup.body().animation != setup.names.idle, limit_s=KEY_EFFECT_S)
        if begun and waits.comes_true(passed, limit_s=10.0, unreadable=True):
            setup.at_fog_wall = False
            return
        if waits.comes_true(passed, limit_s=0.1, unreadable=True):
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
    title.lock_on_bonus_range = plan.lock_on.bonus_range_m
    title.los_lock_on_deactivate_time = plan.lock_on.unseen_s
    setup.in_arena = True
    setup.phase = max(setup.phase, 1)


def _both_alive(setup: Setup) -> bool:
    sight = setup.look()
    return sight.player_hp > 0 and sight.boss_hp > 0


def weapon(setup: Setup, start: Start, waits: Waits) -> None:
    """See that the attack key gives an attack that is known; bare hands give others."""
    title = setup.title
    title.allow_hits, title.allow_attacks, title.allow_moves = False, True, True
    known = {one.name for one in setup.plan.player_animations if one.name.startswith(ATTACK_NAMES)}
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
    raise waits.failed(f"the attack key gave {shown}; equip the sword in the right hand, the shield in the left")


def phase(setup: Setup, start: Start, waits: Waits) -> None:
    """Bring the boss into his second phase."""
    title, plan = setup.title, setup.plan
    second = plan.second_phase
    title.allow_hits, title.allow_deaths, title.allow_attacks, title.allow_moves = False, False, True, True
    setattr(title, f"{plan.boss}_hp", second.boss_hp)
    if second.animation:
        name = second.animation
        waits.until(
            lambda: setup.look().boss_animation == name,
            f"the boss does not begin his second phase with {second.boss_hp} health",
            limit_s=second.begins_within_s,
        )
        waits.until(
            lambda: setup.look().boss_animation != name,
            f"the boss does not end {name}",
            limit_s=second.lasts_at_most_s,
        )
    else:
        waits.sleep(second.begins_within_s / max(setup.speed, 1.0))
    title.allow_attacks = False
    title.reset_boss_hp(plan.boss)
    setup.phase = 2


def freeze(setup: Setup, start: Start, waits: Waits) -> None:
    """Nobody moves, attacks or is hit until both stand in their places."""
    title = setup.title
    title.allow_attacks = title.allow_hits = title.allow_moves = False
    title.allow_deaths = False
    if not 0 <= title.time < PLAY_TIME_LIMIT_MS:
        title.time = 0


def poses(setup: Setup, start: Start, waits: Waits) -> None:
    """Put player and boss in their places, another one if the player is stuck."""
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


def _placed(setup: Setup, player: Pose, boss: Pose, waits: Waits) -> bool:
    title, plan = setup.title, setup.plan
    near = plan.near

    def in_place() -> bool:
        sight = setup.look()
        player_there = _is_at(sight.player_pose, player, near.player_m, near.heading_rad)
        boss_there = _is_at(sight.boss_pose, boss, near.boss_m, near.heading_rad)
        if not player_there:
            title.player_pose = player
        if not boss_there:
            setattr(title, f"{plan.boss}_pose", boss)
        healthy = sight.player_hp >= sight.player_max_hp and sight.boss_hp >= sight.boss_max_hp
        if not healthy:
            title.reset_player_hp()
            title.reset_boss_hp(plan.boss)
        calm = sight.player_animation == setup.names.idle and plan.is_resting(sight.boss_animation)
        return player_there and boss_there and healthy and calm

    title.player_pose = player
    setattr(title, f"{plan.boss}_pose", boss)
    title.reset_player_sp()
    if plan.frost:
        title.player_frost_resistance = 1.0
    limit_s = min(STUCK_S, waits.left_s())
    return waits.comes_true(_steadily(in_place), limit_s=limit_s)


def lock_on(setup: Setup, start: Start, waits: Waits) -> None:
    """Turn the camera to the boss and lock on. The key is a toggle: it is pressed only while there is no lock."""
    while waits.left_s() > 0.0:
        sight = setup.look()
        target = view_to_boss(sight)
        if sight.lock_on:
            if cosine(sight.camera_pose[3:], target) > IN_VIEW:
                return
            waits.sleep(POLL_S)
        elif cosine(sight.camera_pose[3:], target) > IN_VIEW:
            if not setup.title.lock_on:
                tap(setup, "lock_on", waits)
            waits.comes_true(lambda: bool(setup.title.lock_on), limit_s=LOCK_WAIT_S)
        else:
            setup.game.keyboard.hold(setup.camera.towards(sight.camera_pose[3:], target, VIEW_BEYOND))
            waits.sleep(POLL_S)
            setup.game.keyboard.hold(())
    sight = setup.look()
    view = cosine(sight.camera_pose[3:], view_to_boss(sight))
    reason = "the lock-on key has no effect" if view > IN_VIEW else "the camera keys do not turn the camera to the boss"
    raise waits.failed(f"{reason}; check the key settings and the keyboard layout")


def ready(setup: Setup, start: Start, waits: Waits) -> None:
    """Stop the clock, put health as wanted and let both go."""
    title, plan, clock = setup.title, setup.plan, setup.game.clock
    setup.game.keyboard.hold(())
    if setup.pacer is None:
        setup.pacer = setup.choose(setup.game)
    else:
        setup.pacer.begin()
    title.reset_player_hp()
    title.reset_player_sp()
    title.reset_boss_hp(plan.boss)
    if not math.isnan(start.player_sp):
        title.player_sp = int(start.player_sp)
    if not setup.training:
        if not math.isnan(start.player_hp):
            title.player_hp = int(start.player_hp)
        if not math.isnan(start.boss_hp):
            setattr(title, f"{plan.boss}_hp", int(start.boss_hp))
    title.allow_deaths = title.allow_player_death = not setup.training
    title.allow_hits = title.allow_attacks = title.allow_moves = True
    sight = setup.look()
    if not sight.lock_on:
        clock.set_speed(setup.speed)
        raise waits.failed("the lock was lost again")
    setup.sight, setup.fought = sight, True


def is_dead(setup: Setup) -> bool:
    """Has the player no health, or cannot be read because the game loads?"""
    try:
        return bool(setup.title.player_hp <= 0)
    except ReadFailed:
        return True


def tap(setup: Setup, action: str, waits: Waits, watch: Callable[[], bool] | None = None) -> None:
    """Press a key for a moment of the game's time."""
    keyboard = setup.game.keyboard
    keyboard.press(action)
    try:
        held_s = TAP_S / max(setup.speed, 1.0)
        if watch is None:
            waits.sleep(held_s)
        else:
            waits.comes_true(watch, limit_s=held_s, every_s=POLL_S)
    finally:
        keyboard.release(action)


def idle(setup: Setup, waits: Waits) -> None:
    """Wait until the player stands still."""
    waits.until(lambda: setup.body().animation == setup.names.idle, "the player does not come to rest", limit_s=8.0)


def turn_camera(setup: Setup, waits: Waits, target: Sequence[float]) -> None:
    """Turn the camera as far as it goes in a while; the fog wall can be passed without."""

    def turned() -> bool:
        keys = setup.camera.towards(setup.title.camera_pose[3:], target, VIEW_BEYOND)
        setup.game.keyboard.hold(keys)
        return not keys

    try:
        waits.comes_true(turned, limit_s=5.0)
    finally:
        setup.game.keyboard.hold(())


def steady(waits: Waits, condition: Callable[[], bool], failure: Callable[[], str], limit_s: float = 5.0) -> None:
    """Wait until something holds several looks in a row: a teleported player slides or falls first."""
    if not waits.comes_true(_steadily(condition), limit_s=limit_s, every_s=POLL_S):
        raise waits.failed(failure())


def _steadily(condition: Callable[[], bool]) -> Callable[[], bool]:
    looks = 0

    def holds() -> bool:
        nonlocal looks
        looks = looks + 1 if condition() else 0
        return looks >= STEADY_LOOKS

    return holds


def distance(pose: Sequence[float], place: Sequence[float]) -> float:
    """Metres between two places, headings left out."""
    return math.dist(pose[:3], place[:3])


def _is_at(pose: Sequence[float], place: Pose, within_m: float, within_rad: float) -> bool:
    turned = abs(math.remainder(pose[3] - place[3], 2.0 * math.pi))
    return distance(pose, place) <= within_m and turned <= within_rad
