"""HIDDEN, the simulator's own record of a fight: everything the observation does not show."""

from __future__ import annotations

import numpy as np

from soulsgym.sim.tables import MAX_ACTS, MAX_TIMERS

NO_MOVE = -1
"""The player stands or walks."""
ROLL_MOVE = -2
"""The player rolls; rolls are blended from profiles and so are no row of the move table."""
FALL_MOVE = -3

HIDDEN = np.dtype(
    [
        ("key", "u8"),
        ("draws", "u8"),
        # Positions among the engine's tables: of the file this fight is played on, and of its next one.
        ("table", "i4"),
        ("next_table", "i4"),
        # What this fight drew under domain randomisation.
        *(
            (name, "f8")
            for name in (
                "boss_clock", "reach_k", "damage_k", "speed_k", "shift_s", "drop", "noise_m", "noise_rad", "noise_s",
            )
        ),
        ("delay", "i4"),
        # The player.
        *(
            (name, "f8")
            for name in (
                "px", "py", "pz", "pa", "psin", "pcos",  # pose; sine and cosine of the heading
                "vx", "vy",  # metres moved in the last tick
                "hp", "sp",
                "pt", "plabel_t",  # seconds of the label clock in the move, and in the label shown for it
                "kf", "kr", "phi",  # how much of a roll's profiles is used, and its blended direction
                "car_x", "car_y", "car_s",  # metres per tick that live on from the motion before, until then
                "flinch_t",
                "walk_x", "walk_y",  # metres per tick of the last walking
                "stop_t", "since_roll",
                "fall_v",
                "safe_x", "safe_y", "safe_r2",  # a circle known to lie inside the arena
                "held_x", "held_y",
            )
        ),
        *(
            (name, "i4")
            for name in (
                "pmove", "plabel", "cf", "cr",
                "paid",  # parts of the stamina of the move that are paid
                "struck",  # bits: blows of the move that landed
                "walk_ticks", "held_steps", "held_key",
                "last_roll", "after_roll", "lock", "regen_wait",
            )
        ),
        # The camera: its angle, and the lagging point it looks from.
        *((name, "f8") for name in ("cam", "pivot_x", "pivot_y")),
        # The boss.
        *(
            (name, "f8")
            for name in (
                "bx", "by", "bsin", "bcos",
                "bsafe_x", "bsafe_y", "bsafe_r2",
                "boss_hp", "poise", "poise_t",
                "bt", "blabel_t", "cum_f", "cum_r",  # time in the move; metres of its curve used up
                "bcar_x", "bcar_y",  # metres per tick carried over from the move before
                "goal_t", "shift", "clock_s",
                "scale",  # of the forward motion in the running stretch
            )
        ),
        *(
            (name, "i4")
            for name in (
                "bmove", "blabel", "phase", "changes", "first", "goal", "act", "link", "links", "linked", "decided",
                "hit_bits", "dodge_bits", "pending",
                "thrown",  # blows of the throw that were dealt
                "running",  # does he run to where the act begins?
                "interrupted",  # bits: interrupts of the phase that were looked at in this move
                "stretch",  # of the move, counted from 0; -1 none yet
            )
        ),
        ("ready_s", "f8", (MAX_ACTS,)),  # when each act of the phase has cooled down
        ("timer_s", "f8", (MAX_TIMERS,)),  # when each rule of the phase that waits for a time fits again
    ],
    align=True,
)  # fmt: skip
