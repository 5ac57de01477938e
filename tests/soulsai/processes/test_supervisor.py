"""Processes that die, hang and freeze, really; and parents that do."""

import itertools
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from soulsai.processes.supervisor import Command, Pauses, Supervisor, function
from soulsgym.errors import MisuseError

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform == "win32", reason="signals are for POSIX"),
]
QUICK = Pauses(first_s=0.05, longest_s=0.2, reset_after_s=60.0)


def eventually(check, limit_s=60.0):
    deadline_s = time.monotonic() + limit_s
    while not (found := check()):
        assert time.monotonic() < deadline_s, f"not within {limit_s} s: {check.__name__}"
        time.sleep(0.01)
    return found


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def children(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import process_children

    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)  # children need not load pytest
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    return process_children


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes"

    def read():
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    read.path = str(path)
    return read


@pytest.fixture
def supervise(notes):
    started, pids = [], set()

    def make(target, count=1, hang_s=120.0, pauses=QUICK, **settings):
        arguments = settings.pop("arguments", lambda index: (notes.path,))
        news = []
        supervisor = Supervisor(
            function(target, arguments), count, hang_s=hang_s, say=news.append, pauses=pauses, **settings
        )
        supervisor.news = news
        started.append(supervisor)
        supervisor.start()
        return supervisor

    yield make
    for supervisor in started:
        pids.update(supervisor.pids().values())
        supervisor.stop(0.0)
        assert len(supervisor.pids()) == 0
    pids.update(note["pid"] for note in notes())
    assert not [pid for pid in pids if is_running(pid)]


def begun(notes, count):
    return lambda: [note for note in notes() if "index" in note][count - 1 : count]


def wait_until_begun(supervisor, notes, count):
    """Until so many have said so, and the supervisor knows of it and is complete."""
    (last,) = eventually(begun(notes, count))
    eventually(lambda: last["pid"] in supervisor.pids().values() and len(supervisor.pids()) == len(supervisor._places))


def test_runs_all_and_stops_kindly(children, notes, supervise):
    supervisor = supervise(children.good, 3)
    wait_until_begun(supervisor, notes, 3)
    assert len(supervisor.pids()) == 3
    assert sorted(note["index"] for note in notes()) == [0, 1, 2]
    assert not any(note["heavy"] for note in notes()), "children must not pay for what they do not use"
    assert sorted(supervisor.pids().values()) == sorted(note["pid"] for note in notes())
    began_s = time.monotonic()
    supervisor.stop(60.0)
    assert time.monotonic() - began_s < 30.0, "nobody had to be waited for"
    assert sorted(note["end"] for note in notes() if "end" in note) == [0, 1, 2]
    assert len(supervisor.pids()) == 0
    assert dict(supervisor.restarts) == {"died": 0, "hung": 0}
    assert supervisor.news == []
    supervisor.stop(20.0)  # once more does no harm


def test_patience_is_for_those_that_need_it(children, notes, supervise):
    supervisor = supervise(children.slow_to_stop)
    eventually(begun(notes, 1))
    supervisor.stop(60.0)
    assert notes()[-1]["end"] == 0


def test_stop_is_heard_without_signals(children, notes, supervise):
    supervisor = supervise(children.deaf)
    eventually(begun(notes, 1))
    supervisor.stop(60.0)
    assert notes()[-1]["end"] == 0


def test_callbacks_are_called_once(children, notes, supervise):
    supervisor = supervise(children.told)
    eventually(begun(notes, 1))
    supervisor.stop(60.0)
    assert notes()[-1]["calls"] == ["early", "late"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_restart_after_kill(children, notes, supervise, number):
    supervisor = supervise(children.good, 2)
    wait_until_begun(supervisor, notes, 2)
    first = supervisor.pids()
    os.kill(first[1], number)
    wait_until_begun(supervisor, notes, 3)
    assert notes()[-1]["index"] == 1
    assert len(supervisor.pids()) == 2
    assert supervisor.pids()[0] == first[0], "the other one goes on"
    assert supervisor.pids()[1] != first[1]
    assert dict(supervisor.restarts) == {"died": 1, "hung": 0}
    assert supervisor.news == [f"worker 1 died ({number.name}): a new one starts in 0.05 s"]
    assert not Path(f"/proc/{first[1]}").exists(), "a zombie is left"


def test_pauses_grow(children, notes, supervise):
    supervisor = supervise(children.dying, pauses=Pauses(first_s=0.1, longest_s=0.4, reset_after_s=60.0))
    eventually(begun(notes, 5))
    assert [text.rpartition(" in ")[2] for text in supervisor.news][:4] == ["0.1 s", "0.2 s", "0.4 s", "0.4 s"]
    times = [note["at_s"] for note in notes()]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert all(gap >= pause for gap, pause in zip(gaps, (0.1, 0.2, 0.4, 0.4), strict=False)), gaps
    eventually(lambda: supervisor.restarts["died"] >= 4)
    assert "exit code 3" in supervisor.news[0]


def test_pause_is_short_again_after_a_good_me(children, notes, supervise):
    supervisor = supervise(children.touching_late, pauses=Pauses(first_s=0.05, longest_s=9.0, reset_after_s=0.5))
    for me in (1, 2, 3):
        wait_until_begun(supervisor, notes, me)
        if me == 3:
            time.sleep(0.6)
            Path(f"{notes.path}.touch").touch()
            eventually(lambda: supervisor._places[0].seen)
        os.kill(supervisor.pids()[0], signal.SIGKILL)
        eventually(lambda me=me: len(supervisor.news) == me)
    assert [text.rpartition(" in ")[2] for text in supervisor.news] == ["0.05 s", "0.1 s", "0.05 s"]


def test_one_that_returns_has_finished(children, notes, supervise):
    supervisor = supervise(children.returning, 2)
    eventually(lambda: supervisor.ended() == 2)
    time.sleep(0.3)
    assert len(notes()) == 2
    assert len(supervisor.pids()) == 0
    assert dict(supervisor.restarts) == {"died": 0, "hung": 0}
    assert supervisor.news == []


def test_reason_of_an_error_reaches_the_user(children, notes, supervise, capfd):
    supervisor = supervise(children.failing)
    eventually(lambda: supervisor.news)
    assert supervisor.news[0] == "worker 0 ended: the bridge is out: take the ferry: a new one starts in 0.05 s"
    supervisor.stop(0.0)
    assert "Traceback" not in capfd.readouterr().err


def test_hang_is_seen(children, notes, supervise):
    supervisor = supervise(children.hanging, hang_s=0.4, start_s=120.0)
    eventually(begun(notes, 2))
    first, second = notes()[:2]
    assert second["at_s"] - first["at_s"] > 0.4
    eventually(lambda: supervisor.restarts["hung"] >= 1)
    assert supervisor.restarts["died"] == 0
    assert supervisor.news[0] == "worker 0 hung and was killed: a new one starts in 0.05 s"
    assert not is_running(first["pid"])


def test_start_may_take_longer_but_not_for_ever(children, notes, supervise):
    began_s = time.monotonic()
    supervisor = supervise(children.never_there, hang_s=0.1, start_s=0.8)
    eventually(lambda: supervisor.news)
    assert time.monotonic() - began_s > 0.8
    assert "hung" in supervisor.news[0]


def test_frozen_child_is_replaced(children, notes, supervise):
    supervisor = supervise(children.touching_first, 2, hang_s=math.inf, start_s=math.inf)
    wait_until_begun(supervisor, notes, 2)
    eventually(lambda: supervisor._places[0].seen)
    first = supervisor.pids()
    os.kill(first[0], signal.SIGSTOP)
    supervisor._hang_s = 0.3
    eventually(lambda: supervisor.restarts["hung"] >= 1)
    supervisor._hang_s = math.inf
    wait_until_begun(supervisor, notes, 3)
    assert notes()[-1]["index"] == 0
    assert not is_running(first[0])
    assert supervisor.restarts["died"] == 0
    assert supervisor.pids()[1] == first[1]


@pytest.mark.parametrize("frozen", [False, True])
def test_stop_of_a_child_that_does_not_listen(children, notes, supervise, frozen):
    supervisor = supervise(children.stubborn)
    eventually(begun(notes, 1))
    if frozen:
        os.kill(notes()[0]["pid"], signal.SIGSTOP)
    began_s = time.monotonic()
    supervisor.stop(0.4)
    assert 0.4 <= time.monotonic() - began_s < 30.0
    assert len(supervisor.pids()) == 0
    assert not is_running(notes()[0]["pid"])


def test_patience_can_end_earlier(children, notes, supervise):
    supervisor = supervise(children.stubborn)
    eventually(begun(notes, 1))
    began_s = time.monotonic()
    slow = threading.Thread(target=supervisor.stop, args=(60.0,))
    slow.start()
    time.sleep(0.2)
    assert len(supervisor.pids()) == 1
    supervisor.stop(0.1)
    slow.join(60.0)
    assert time.monotonic() - began_s < 30.0
    assert len(supervisor.pids()) == 0


def test_children_leave_interrupts_to_the_parent(children, notes, supervise):
    supervisor = supervise(children.good)
    eventually(lambda: supervisor.pids())
    for _ in range(20):  # from its very first moment
        os.kill(supervisor.pids()[0], signal.SIGINT)
        time.sleep(0.02)
    eventually(begun(notes, 1))
    os.kill(supervisor.pids()[0], signal.SIGINT)
    time.sleep(0.2)
    assert len(supervisor.pids()) == 1
    assert supervisor.news == []


def test_a_polite_kill_from_outside_ends_a_child_for_good(children, notes, supervise):
    supervisor = supervise(children.good, 2)
    wait_until_begun(supervisor, notes, 2)
    os.kill(supervisor.pids()[1], signal.SIGTERM)
    eventually(lambda: supervisor.ended() == 1)
    assert notes()[-1]["end"] == 1
    time.sleep(0.3)
    assert len(supervisor.pids()) == 1


def test_arguments_are_made_for_every_start_and_their_pipes_given_away(children, notes, supervise):
    pipes = []

    def arguments(index):
        if len(pipes) == 1:
            pipes.append(None)
            raise OSError("too many files")
        ours, theirs = multiprocessing.Pipe()
        pipes.append((ours, theirs))
        return notes.path, theirs

    supervisor = supervise(children.plays_on_a_pipe, arguments=arguments)
    wait_until_begun(supervisor, notes, 1)
    ours, theirs = pipes[0]
    assert ours.recv_bytes() == b"0"
    assert theirs.closed
    os.kill(supervisor.pids()[0], signal.SIGKILL)
    assert ours.poll(60.0)
    with pytest.raises(EOFError):
        ours.recv_bytes()
    wait_until_begun(supervisor, notes, 2)
    assert pipes[2][0].recv_bytes() == b"0"
    assert "cannot be started" in supervisor.news[1]
    assert "too many files" in supervisor.news[1]
    assert dict(supervisor.restarts) == {"died": 0, "hung": 0, "failed": 1}


def test_news_that_cannot_be_told_harm_nobody(children, notes):
    def say(text):
        raise RuntimeError("no screen")

    supervisor = Supervisor(function(children.good, lambda index: (notes.path,)), hang_s=120.0, say=say, pauses=QUICK)
    supervisor.start()
    try:
        eventually(begun(notes, 1))
        os.kill(notes()[0]["pid"], signal.SIGKILL)
        eventually(begun(notes, 2))
    finally:
        supervisor.stop(0.0)


def test_target_must_be_importable():
    with pytest.raises(MisuseError, match="function of a module"):
        function(lambda me: None)


def test_one_that_never_works_is_given_up(children, notes, supervise):
    supervisor = supervise(children.failing, 2, tries=3)
    eventually(lambda: supervisor.ended() == 2)
    assert supervisor.problems() == ["the bridge is out: take the ferry"] * 2
    assert len(notes()) == 6
    told = [text for text in supervisor.news if text.startswith("worker 0")]
    assert told[-1] == "worker 0 ended: the bridge is out: take the ferry: given up after 3 tries"
    assert len(told) == 3
    time.sleep(0.3)
    assert len(notes()) == 6


def test_an_unexpected_error_is_named(children, notes, supervise):
    supervisor = supervise(children.broken, tries=1)
    eventually(lambda: supervisor.ended() == 1)
    assert supervisor.problems() == ["ZeroDivisionError: no bridge"]


def test_one_that_has_worked_once_is_never_given_up(children, notes, supervise):
    supervisor = supervise(children.working_once, tries=2)
    eventually(begun(notes, 6))
    assert supervisor.ended() == 0
    assert supervisor.problems() == []


def test_one_that_is_killed_is_not_to_blame(children, notes, supervise):
    supervisor = supervise(children.good, tries=2)
    for life in (1, 2, 3):
        wait_until_begun(supervisor, notes, life)
        os.kill(supervisor.pids()[0], signal.SIGKILL)
    wait_until_begun(supervisor, notes, 4)
    assert supervisor.problems() == []


# Programs


def sleeper(**settings):
    return Command(["sleep", "600"], **settings)


def test_nothing_is_started_by_a_constructor():
    before = threading.active_count()
    command = sleeper()
    supervisor = Supervisor(lambda index: command.start())
    assert threading.active_count() == before
    supervisor.stop()  # of what never ran
    with pytest.raises(AttributeError):
        command.exit_code()


def test_a_program_that_is_killed_is_started_again():
    news, processes = [], []

    def start(index):
        processes.append(sleeper(ask_with=lambda: False).start())
        return processes[-1]

    supervisor = Supervisor(start, name="the sleeper", pauses=QUICK, say=news.append)
    supervisor.start()
    first = eventually(lambda: processes[:1])[0]
    first.kill()
    eventually(lambda: len(supervisor.pids()) == 1 and len(processes) == 2)
    supervisor.stop()
    assert news == ["the sleeper died (SIGKILL): a new one starts in 0.05 s"]
    assert [process.exit_code() for process in processes] == [-signal.SIGKILL, -signal.SIGTERM]


def test_the_first_start_can_be_waited_for():
    def refuse(index):
        raise ValueError("no sleep tonight")

    with pytest.raises(ValueError, match="no sleep tonight"):
        Supervisor(refuse).start(wait=True)
    supervisor = Supervisor(lambda index: sleeper().start())
    supervisor.start(wait=True)
    assert len(supervisor.pids()) == 1
    supervisor.stop(0.0)
    assert len(supervisor.pids()) == 0


def test_a_start_that_fails_later_is_tried_again_and_told_once():
    news, tries = [], []

    def start(index):
        tries.append(1)
        if 1 < len(tries) < 5:
            raise OSError("port 7 is taken")
        return Command(["true"] if len(tries) == 6 else ["false"]).start()

    supervisor = Supervisor(start, name="it", pauses=QUICK, say=news.append)
    supervisor.start(wait=True)
    eventually(lambda: supervisor.ended() == 1)
    supervisor.stop()
    assert [text.partition(":")[0] for text in news] == [
        "it died (exit code 1)", "it cannot be started (port 7 is taken)", "it died (exit code 1)",
    ]  # fmt: skip
    assert dict(supervisor.restarts) == {"died": 1, "hung": 0, "failed": 1}


@pytest.mark.parametrize(
    ("program", "asked", "code"),
    [
        ("import sys; sys.stdin.read()", None, 0),
        ("import time; time.sleep(600)", None, -signal.SIGTERM),
        ("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)",
         lambda: False, -signal.SIGKILL),
    ],
)  # fmt: skip
def test_stopping_a_program_is_polite_first(program, asked, code):
    command = Command(
        [sys.executable, "-S", "-c", f"print(flush=True); {program}"], stdout=subprocess.PIPE, ask_with=asked
    )
    command.start()
    for _ in range(1 + program.count("print")):
        command.stdout.readline()
    command.stop(30.0 if code == 0 else 0.2, 30.0 if code == -signal.SIGTERM else 0.2)
    assert command.exit_code() == code
    command.stdout.close()


def test_a_frozen_program_is_killed_with_all_it_has_started():
    command = Command(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE).start()
    grandchild = int(command.stdout.readline())
    os.kill(command.pid, signal.SIGSTOP)
    command.stop(0.1, 0.1)
    assert command.exit_code() == -signal.SIGKILL
    eventually(lambda: not is_running(grandchild))
    command.stdout.close()


def test_ctrl_c_in_the_terminal_does_not_reach_a_program():
    command = sleeper().start()
    assert os.getsid(command.pid) != os.getsid(0)
    command.stop(0.0)


ORPHAN = """
import subprocess, sys, time
from soulsai.processes.supervisor import Command
words = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"] if sys.argv[1] == "reads" else ["sleep", "600"]
print(Command(words, ask_with=None if sys.argv[1] == "reads" else lambda: False).start().pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["reads", "reads nothing"])
def test_no_program_outlives_its_parent(kind):
    with subprocess.Popen([sys.executable, "-c", ORPHAN, kind], stdout=subprocess.PIPE) as parent:
        try:
            pid = int(parent.stdout.readline())
            assert is_running(pid)
            parent.kill()
            parent.wait(60.0)
            eventually(lambda: not is_running(pid))
        finally:
            parent.kill()


@pytest.mark.parametrize("target", ["good", "stubborn"])
@pytest.mark.parametrize("end", ["kill", "term", "exit"])
@pytest.mark.parametrize("forked", ["", "forked"])
def test_no_child_outlives_its_parent(children, notes, target, end, forked):
    command = [sys.executable, children.__file__, notes.path, target, forked]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as parent:
        try:
            eventually(begun(notes, 2))
            pids = [note["pid"] for note in notes()]
            assert all(map(is_running, pids))
            if end == "exit":
                parent.stdin.write(b"\n")
                parent.stdin.flush()
            else:
                parent.send_signal(signal.SIGKILL if end == "kill" else signal.SIGTERM)
            parent.wait(60.0)
            eventually(lambda: not any(map(is_running, pids)))
        finally:
            parent.kill()


def test_children_watch_the_parent_themselves_too(children, notes, monkeypatch, tmp_path):
    """Where the system does not end them with it."""
    script = tmp_path / "elsewhere.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(children.__file__).parent)!r})\n"
        "import process_children\n"
        "sys.platform = 'elsewhere'\n"
        "if __name__ == '__main__':\n"
        "    process_children.parent(*sys.argv[1:])\n"
    )
    with subprocess.Popen([sys.executable, script, notes.path, "stubborn"], stdin=subprocess.PIPE) as parent:
        try:
            eventually(begun(notes, 2))
            parent.send_signal(signal.SIGKILL)
            parent.wait(60.0)
            pids = [note["pid"] for note in notes()]
            eventually(lambda: not any(map(is_running, pids)))
        finally:
            parent.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_an_interrupt_does_not_hit_the_process_that_others_are_forked_from(tmp_path):
    """Not even while it loads: Ctrl-C in a terminal is for all processes, and the parent decides."""
    loaded = tmp_path / "loaded"
    (tmp_path / "module_to_load.py").write_text(
        "import os, pathlib, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
        f"pathlib.Path({str(loaded)!r}).write_text('x')\n"
    )
    text = (
        "import signal, sys\n"
        "from soulsai.processes.supervisor import prepare_forks\n"
        "prepare_forks('module_to_load', {})\n"
        "assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
        "sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", text], env=os.environ | {"PYTHONPATH": str(tmp_path)}, stdin=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            eventually(loaded.exists)
        finally:
            _, said = process.communicate("\n", timeout=60.0)
    assert (process.returncode, said) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_forked_children_share_a_process_and_outlive_its_end(children, notes):
    """Should the process that they are forked from be killed, they are with it, and start again."""
    command = [sys.executable, children.__file__, notes.path, "good", "forked"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as parent:
        try:
            eventually(begun(notes, 2))
            first = notes()
            (template,) = {note["parent"] for note in first}
            assert template != parent.pid
            assert b"forkserver" in Path(f"/proc/{template}/cmdline").read_bytes()
            assert b"SOULS_TEST=loaded" in Path(f"/proc/{template}/environ").read_bytes()
            assert b"SOULS_TEST" not in Path(f"/proc/{parent.pid}/environ").read_bytes()
            os.kill(template, signal.SIGKILL)
            eventually(begun(notes, 4))
            assert not any(is_running(note["pid"]) for note in first)
            assert {note["parent"] for note in notes()[2:]}.isdisjoint({template, parent.pid})
        finally:
            parent.kill()
    eventually(lambda: not any(is_running(note["pid"]) for note in notes()))
