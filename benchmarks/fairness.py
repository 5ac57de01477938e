"""Is the fight hard but fair? Win rates of the scripted players over seeded full fights.

.venv/bin/python benchmarks/fairness.py [FIGHTS]
"""

from __future__ import annotations

import sys

from soulsgym.movesets import variants
from soulsgym.players import make_player
from soulsgym.players.fights import run_fights

SEED = 7
LATE_S = 0.1
PLAYERS: tuple[tuple[str, dict[str, float]], ...] = (
    ("idle", {}),
    ("random", {}),
    ("attack_spam", {}),
    ("roll_spam", {}),
    ("runner", {}),
    ("duellist", {}),
    ("duellist", {"delay_s": LATE_S}),
)


def main(fights: int) -> None:
    """Print one table per variant."""
    for variant in variants("iudex"):
        print(f"\n{variant}: {fights} full fights each, seed {SEED}")
        print(f"{'player':<26}{'wins':>8}{'median s':>10}{'time-outs':>11}  most deaths by")
        for name, options in PLAYERS:
            result = run_fights(make_player(name, fights, SEED, **options), fights, SEED, variant=variant)
            label = f"{name}, {LATE_S} s late" if options else name
            deaths = ", ".join(list(result.deaths_by_attack)[:3])
            print(
                f"{label:<26}{result.win_rate:>8.1%}{result.median_survival_s:>10.1f}{result.time_outs:>11}  {deaths}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
