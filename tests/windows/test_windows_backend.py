"""The tests that play on the stand-in, run once more by a Windows Python under Wine: on the Windows backend."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import pytest
import standin_kit
from windows_python import ROOT, Ended, NotAvailable, WindowsPython, windows_path, windows_python

TESTS = ROOT / "tests"
LIMIT_S = 1200.0
"""For all files together, as a Windows Python takes long to start. Reading memory takes 50 times as long under Wine as
for a Linux program."""
OWN = "windows/test_parts.py"
NOT_FOR_WINDOWS = {
    "soulsgym/game/speed/test_speed.py",
    "soulsgym/game/test_window_on_standin.py",
    "soulsgym/game/titles/test_ring_on_standin.py",
}
"""They start their own program by Wine or look at an X display. On Windows OWN is about clock, keys and window."""


CHOSEN = {
    "soulsgym/envs/test_game_on_standin.py": (
        "test_a_crash_cuts_the_fight_off[SoulsGymIudex-v0]",
        "test_frames_are_from_the_right_tick",
    ),
    # In the order of the file: a game that has lost the keyboard to another one does not get it back under Wine.
    "soulsgym/game/test_engine_on_standin.py": (
        "test_a_long_run_of_steps_is_six_ticks_each_and_stays_in_the_observation_space",
        "test_keys_arrive_in_the_first_tick_and_are_held_for_three",
        "test_trouble_in_a_fight_is_survived[null_chains_ticks]",
        "test_trouble_in_a_fight_is_survived[lose_focus_ticks]",
        "test_a_game_that_ends_or_hangs_is_started_again[crash]",
        "test_closing_puts_everything_back",
        "test_an_interrupted_step_leaves_no_key_down",
    ),
    "soulsgym/game/titles/test_on_standin.py": (
        "test_another_version_is_refused",
        "test_every_property_can_be_read_and_is_plausible",
        "test_the_camera_is_turned_by_real_keys",
        "test_two_games_at_once_never_mix",
        "test_what_is_written_is_seen_again_some_ticks_later[allow_moves-False]",
        "test_what_is_written_is_seen_again_some_ticks_later[iudex_hp-500]",
        "test_what_was_remembered_is_put_back",
    ),
    "soulsgym/test_scripts_on_standin.py": ("test_they_run_as_they_are[the_game_itself]",),
}
"""What depends on the system: of all the others, which take minutes here, Linux can tell as well."""


def played_on_the_standin() -> list[str]:
    """The files of tests of which some need Wine."""
    files = sorted((TESTS / "soulsgym").rglob("test_*.py"))
    names = {file.relative_to(TESTS).as_posix() for file in files if "mark.wine" in file.read_text()}
    return sorted(names - NOT_FOR_WINDOWS)


@dataclass(frozen=True)
class Report:
    """What a run of pytest says about itself."""

    passed: int
    skipped: dict[str, str]
    failed: dict[str, str]

    @classmethod
    def read(cls, file: Path) -> Report:
        """From the XML that pytest wrote."""
        passed, skipped, failed = 0, {}, {}
        for case in ElementTree.parse(file).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            bad = [part for part in case if part.tag in ("failure", "error")]
            if bad:
                failed[name] = "\n".join(part.text or part.get("message", "") for part in bad)
            elif (left_out := case.find("skipped")) is not None:
                skipped[name] = left_out.get("message", "")
            else:
                passed += 1
        return cls(passed, skipped, failed)


def problems(ended: Ended, file: Path, limit_s: float = LIMIT_S) -> str:
    """What is wrong with a run of pytest by the Windows Python; nothing if all is well."""
    if ended.code is None:
        return f"the Windows Python was not done after {limit_s:g} s\n{ended.output}"
    if not file.is_file():
        return f"the Windows Python ended with code {ended.code} and without a report\n{ended.output}"
    report = Report.read(file)
    if report.failed:
        return "\n".join(f"=== under Windows: {name}\n{text}" for name, text in report.failed.items())
    if not report.passed:
        reasons = "".join(f"\n{name}: {reason}" for name, reason in report.skipped.items())
        return f"no test ran under Windows{reasons}\n{ended.output}"
    if ended.code != 0:
        return f"pytest ended with code {ended.code} under Windows\n{ended.output}"
    # Only what the system cannot do may be left out: a rig that does not work must not look like success.
    strange = {name: why for name, why in report.skipped.items() if not {"Linux", "Windows"} & set(why.split())}
    return "".join(f"{name} was left out under Windows: {why}\n" for name, why in strange.items())


@pytest.fixture(scope="session")
def python(wine) -> WindowsPython:
    try:
        return windows_python()
    except NotAvailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def under_windows(python, wine, standin_exe, tmp_path):
    """A function that runs pytest by the Windows Python; what is wrong with the run."""

    def run(*arguments: str, limit_s: float = LIMIT_S) -> str:
        report = tmp_path / "report.xml"
        report.unlink(missing_ok=True)  # of a run before: one that crashes writes none
        environment = {**wine.environment(), "SOULS_STANDIN_EXE": windows_path(standin_exe)}
        ended = python.run(
            "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short", "--basetemp", windows_path(tmp_path / "base"),
            "-c", windows_path(ROOT / "pyproject.toml"), "--junitxml", windows_path(report), *arguments,
            wine=environment, limit_s=limit_s, paths=[TESTS / "standin"],
        )  # fmt: skip
        if ended.code is None:
            # Its children outlive it.
            wine.prefix().run(["taskkill", "/f", "/im", standin_kit.EXECUTABLE])
        return problems(ended, report, limit_s)

    return run


@pytest.mark.wine
@pytest.mark.slow
def test_the_windows_backend_passes(under_windows):
    chosen = []
    for file in (OWN, *played_on_the_standin()):
        path = windows_path(TESTS / file)
        chosen += [f"{path}::{name}" for name in CHOSEN.get(file, ())] or [path]
    # A test of this name that is no longer there ends the run with an error.
    wrong = under_windows("-m", "wine", *chosen)
    assert not wrong, wrong


@pytest.mark.parametrize("file", [*CHOSEN, *sorted(NOT_FOR_WINDOWS)])
def test_what_is_chosen_or_left_out_is_there(file):
    text = (TESTS / file).read_text()
    assert "mark.wine" in text
    assert [name for name in CHOSEN.get(file, ()) if f"def {name.partition('[')[0]}(" not in text] == []


@pytest.mark.wine
@pytest.mark.slow
def test_what_goes_wrong_under_windows_is_seen(under_windows, tmp_path):
    """A rig that shows only success would show nothing."""
    sample = tmp_path / "test_sample.py"
    words = (windows_path(sample), "--confcutdir", windows_path(tmp_path))
    sample.write_text("import sys\ndef test_fails(): assert sys.platform == 'linux', 'this is ' + sys.platform\n")
    assert "this is win32" in under_windows(*words)
    sample.write_text("import ctypes\ndef test_crashes(): ctypes.CDLL('ucrtbase').abort()\n")
    assert "without a report" in under_windows(*words)
    sample.write_text("import time\ndef test_sleeps(): time.sleep(600)\n")
    assert "not done after 1 s" in under_windows(*words, limit_s=1.0)


PASSED = '<testcase classname="a" name="b"/>'
FAILED = '<testcase classname="a" name="c"><failure message="m">one is not two</failure></testcase>'
BROKEN = '<testcase classname="a" name="c"><error message="m">no fixture</error></testcase>'
AWAY = '<testcase classname="a" name="d"><skipped message="{}"/></testcase>'


@pytest.mark.parametrize(
    ("cases", "code", "said"),
    [
        ([PASSED], 0, ""),
        ([PASSED, AWAY.format("only Linux has this")], 0, ""),
        ([PASSED, FAILED], 1, "one is not two"),
        ([PASSED, BROKEN], 1, "no fixture"),
        ([], 5, "no test ran"),
        ([AWAY.format("only Linux has this")], 0, "no test ran"),
        ([PASSED, AWAY.format("no stand-in")], 0, "a::d was left out under Windows: no stand-in"),
        ([PASSED], 3, "ended with code 3"),
        ([PASSED], None, "not done after 7 s"),
    ],
)
def test_a_run_is_judged_by_its_report(tmp_path, cases, code, said):
    file = tmp_path / "report.xml"
    file.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    wrong = problems(Ended(code, "the output"), file, 7.0)
    assert said in wrong
    assert bool(said) == bool(wrong)


def test_a_run_without_a_report_is_seen(tmp_path):
    assert "code 0 and without a report\nthe output" in problems(Ended(0, "the output"), tmp_path / "none.xml")
