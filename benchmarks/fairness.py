"""Is the fight hard but fair? Win rates of the scripted players over seeded full fights, beside their bounds.

.venv/bin/python benchmarks/fairness.py [FIGHTS] [--boss NAME]

The exit status is 1 if the standard variant misses a bound. Policies that are searched for are in exploits.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from soulsgym.players import FightResults, make_player, run_fights
from soulsgym.spec import STANDARD, load_fight, variants

SEED = 7
LATE_S = 0.1
LATE = f"duellist, {LATE_S} s late"
PLAYERS: dict[str, tuple[str, dict[str, float]]] = {
    **{name: (name, {}) for name in ("idle", "random", "attack_spam", "roll_spam", "runner", "duellist")},
    LATE: ("duellist", {"delay_s": LATE_S}),
}
MOST_WINS = {"idle": 0.0, "random": 0.0, "attack_spam": 0.02, "roll_spam": 0.02, "runner": 0.02}
DUELLIST_WINS = 0.15, 0.8
LATE_SHARE = 0.5
"""Of the duellist's wins, that he may have at most when he is late: timing must matter."""
RANDOM_SURVIVES_S = 20.0, 60.0


def missed_bounds(results: Mapping[str, FightResults]) -> list[str]:
    """What is not fair about the standard fight, a sentence each."""
    found = [
        f"{name} wins {results[name].win_rate:.1%}, more than {most:.0%}"
        for name, most in MOST_WINS.items()
        if results[name].win_rate > most
    ]
    wins, late = results["duellist"].win_rate, results[LATE].win_rate
    low, high = DUELLIST_WINS
    if not low <= wins <= high:
        found.append(f"the duellist wins {wins:.1%}, not {low:.0%} to {high:.0%}")
    if late > LATE_SHARE * wins:
        found.append(f"{LATE_S} s late he wins {late:.1%}, more than half of his {wins:.1%}")
    survives_s, (low_s, high_s) = results["random"].median_survival_s, RANDOM_SURVIVES_S
    if not low_s <= survives_s <= high_s:
        found.append(f"random survives {survives_s:.1f} s, not {low_s:.0f} to {high_s:.0f} s")
    return found


def main(fights: int, boss: str = "iudex") -> int:
    """Print one table per variant; 1 if the standard one misses a bound."""
    missed: list[str] = []
    known = load_fight(boss)
    for variant in variants(boss):
        print(f"\n{variant}: {fights} full fights each, seed {SEED}")
        print(f"{'player':<26}{'wins':>8}{'median s':>10}{'time-outs':>11}  most deaths by")
        results, spec = {}, load_fight(boss, variant)
        for label, (name, options) in PLAYERS.items():
            result = run_fights(make_player(name, known, fights, SEED, **options), spec, fights, SEED)
            results[label] = result
            deaths = ", ".join(list(result.deaths_by_attack)[:3])
            print(
                f"{label:<26}{result.win_rate:>8.1%}{result.median_survival_s:>10.1f}{result.time_outs:>11}  {deaths}",
                flush=True,
            )
        if variant == STANDARD:
            missed = missed_bounds(results)
    print(f"\n{STANDARD}: {'; '.join(missed) if missed else 'all bounds are kept'}")
    return 1 if missed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fights", type=int, nargs="?", default=2000)
    parser.add_argument("--boss", default="iudex")
    given = parser.parse_args()
    sys.exit(main(given.fights, given.boss))
