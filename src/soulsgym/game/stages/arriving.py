"""From wherever the game is to a living boss before the player: focus, character, bonfire, fog wall, arena."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from soulsgym.errors import FocusLost, MisuseError, ReadFailed
from soulsgym.game.stages.handling import KEY_EFFECT_S, distance, idle, is_dead, steady, tap, turn_camera

if TYPE_CHECKING:
    from soulsgym.game.reset import Setup, Start
    from soulsgym.game.waiting import Waits

MOVED_M = 0.05
FOG_TRIES = 4


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
    waits.until(lambda: _remember(setup), "the game's flags cannot be read", unreadable=True)


def _remember(setup: Setup) -> bool:
    setup.game.remember()
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
