"""From two who stand in the arena to the first step: weapon, phase, places, lock, clock."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from soulsgym.game.aiming import IN_VIEW, cosine, view_to_boss
from soulsgym.game.stages.handling import KEY_EFFECT_S, POLL_S, VIEW_BEYOND, distance, idle, is_at, steadily, tap

if TYPE_CHECKING:
    from soulsgym.game.reset import Setup, Start
    from soulsgym.game.waiting import Waits
    from soulsgym.spec.game import Pose

PLAY_TIME_LIMIT_MS = 590 * 3_600_000
"""The game stops counting at 999 hours, and we would with it; its 32 bits turn negative even earlier."""
STUCK_S = 2.5
"""A player who is not in place by then, in real seconds, stands in a wall."""
ATTACK_NAMES = "AttackRight"
LOCK_WAIT_S = 0.5


def weapon_is_unsure(setup: Setup, start: Start) -> bool:
    """Has nobody seen yet that attacks are attacks?"""
    return not setup.weapon_works


def phase_is_missing(setup: Setup, start: Start) -> bool:
    """Must the boss be brought into a later phase?"""
    return start.phase > setup.phase


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
    """Bring the boss into a later phase."""
    while setup.phase < start.phase:
        _next_phase(setup, waits)


def _next_phase(setup: Setup, waits: Waits) -> None:
    title, plan = setup.title, setup.plan
    change = plan.changes[setup.phase - 1]
    title.allow_hits, title.allow_deaths, title.allow_attacks, title.allow_moves = False, False, True, True
    setattr(title, f"{plan.boss}_hp", change.boss_hp)
    if change.animation:
        name = change.animation
        waits.until(
            lambda: setup.look().boss_animation == name,
            f"the boss does not begin phase {setup.phase + 1} with {change.boss_hp} health",
            limit_s=change.begins_within_s,
        )
        waits.until(
            lambda: setup.look().boss_animation != name,
            f"the boss does not end {name}",
            limit_s=change.lasts_at_most_s,
        )
    else:
        waits.sleep(change.begins_within_s / max(setup.speed, 1.0))
    title.allow_attacks = False
    title.reset_boss_hp(plan.boss)
    setup.phase += 1


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
        player_there = is_at(sight.player_pose, player, near.player_m, near.heading_rad)
        boss_there = is_at(sight.boss_pose, boss, near.boss_m, near.heading_rad)
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
    if "frost" in plan.statuses:
        title.player_frost_resistance = 1.0
    limit_s = min(STUCK_S, waits.left_s())
    return waits.comes_true(steadily(in_place), limit_s=limit_s)


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
