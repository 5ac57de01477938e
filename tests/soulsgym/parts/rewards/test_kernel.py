"""Loops compiled for sets of terms, and kept on disk under names that tell them apart."""

import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numba import njit

from soulsgym.parts.registry import find
from soulsgym.parts.rewards import make_reward, term
from soulsgym.parts.rewards.kernel import begin_loop, step_loop
from soulsgym.state import FIGHT, Outcome

ALONE = np.ones(1, np.bool_)


def kinds(*names):
    return tuple(find("reward term", name) for name in names)


def paying(amount):
    """A compiled term that captured a number."""

    @njit
    def pay(fight):
        return amount

    return pay


def test_a_set_of_terms_is_compiled_once():
    assert step_loop(kinds("dealt", "far")) is step_loop(kinds("dealt", "far"))
    assert step_loop(kinds("dealt", "far")) is not step_loop(kinds("far", "dealt"))


def test_the_same_terms_in_another_order_are_another_loop():
    names = {step_loop(kinds(*order)).__name__ for order in (("dealt", "far"), ("far", "dealt"), ("dealt", "step"))}
    assert len(names) == 3
    assert begin_loop(kinds("far")).__name__ != begin_loop(kinds("closing")).__name__


def test_what_a_term_captured_counts(spec):
    """Two terms of the same name and text must not be taken for one another."""
    loops, rewards = [], []
    for amount in (1.0, 2.0):
        term("pay")(paying(amount))
        loops.append(step_loop(kinds("pay")).__name__)
        reward = make_reward({"weights": {"pay": 1.0}}, 1, spec)
        reward.begin(np.zeros(1, FIGHT), ALONE)
        rewards.append(float(reward.of(np.zeros(1, FIGHT))[0][0]))
    assert loops[0] != loops[1]
    assert rewards == [1.0, 2.0]


def kept(function):
    term("mine")(function)
    return type(step_loop(kinds("mine"))._cache).__name__ != "NullCache"


def captures(value):
    """A compiled function that captured something."""

    def mine(fight):
        return value[0]

    return njit(mine)


def plain(fight):
    return 1.0


@pytest.mark.parametrize(
    ("function", "is_kept"),
    [
        (captures((1.0, 2.0)), True),
        (captures(np.ones(3)), False),  # a longer array's text would leave its middle out
        (njit(lambda fight: math.sqrt(4.0) if fight.step in (1, 2) else np.pi), True),
        (njit(lambda fight: float(os.EX_OK)), False),  # a number of another module may change without being seen
        (njit(lambda fight: Outcome.WON), False),
    ],
)
def test_only_what_can_be_told_apart_is_kept_on_disk(function, is_kept):
    assert kept(function) == is_kept


def test_what_is_not_kept_works_all_the_same(spec):
    term("mine")(captures(np.array([3.0])))
    assert make_reward({"weights": {"mine": 2.0}}, 1, spec).of(np.zeros(1, FIGHT))[0].tolist() == [6.0]


def test_other_options_of_the_compiler_are_another_loop():
    names = []
    for options in ({}, {"fastmath": True}):
        term("mine")(njit(**options)(plain))
        names.append(step_loop(kinds("mine")).__name__)
    assert names[0] != names[1]


PROGRAM = """
    import numpy as np
    from soulsgym.parts.rewards import make_reward
    from soulsgym.parts.rewards.kernel import step_loop
    from soulsgym.spec import load_fight
    from soulsgym.state import FIGHT, Outcome
    import mine

    fights = np.zeros(2, FIGHT)
    fights["boss_max_hp"] = fights["player_max_hp"] = 100
    reward = make_reward("duel", 2, load_fight("iudex"), weights={"mine": 1.0})
    reward.begin(fights, np.ones(2, np.bool_))
    value = reward.of(fights)[0][0]
    stats = reward._step.stats
    print(value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
TERM = """
    from numba import njit
    from soulsgym.parts.rewards import term

    VALUE = {value}

    @njit
    def helper():
        return {helper}

    @term("mine")
    @njit
    def mine(fight):
        return VALUE + helper()
"""


def run(folder, value, helper, module="mine"):
    """Reward, loops found on disk and loops compiled, of a process with the term in a module."""
    (folder / f"{module}.py").write_text(textwrap.dedent(TERM.format(value=value, helper=helper)))
    environment = {"PYTHONPATH": f"{folder}:{':'.join(sys.path)}", "NUMBA_CACHE_DIR": str(folder / "cache")}
    program = textwrap.dedent(PROGRAM).replace("import mine\n", f"import {module}\n")
    command = [sys.executable, "-B", "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.slow
def test_a_users_loop_is_kept_on_disk_until_its_text_changes(tmp_path):
    assert run(tmp_path, 1.0, 2.0) == ["3.0", "0", "1"]
    assert run(tmp_path, 1.0, 2.0) == ["3.0", "1", "0"]
    assert run(tmp_path, 5.0, 2.0) == ["7.0", "0", "1"]
    assert run(tmp_path, 5.0, 4.0) == ["9.0", "0", "1"]


@pytest.mark.slow
def test_the_same_term_in_another_module_is_another_loop(tmp_path):
    """What is kept on disk imports the module of its functions, which may be gone."""
    assert run(tmp_path, 1.0, 2.0) == ["3.0", "0", "1"]
    (tmp_path / "mine.py").unlink()
    assert run(tmp_path, 1.0, 2.0, module="yours") == ["3.0", "0", "1"]
