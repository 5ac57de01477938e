"""Processes that die, hang and freeze, really; and parents that do."""

import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from soulsai.acting.crew import Crew, Pauses
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
    import crew_children

    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)  # children need not load pytest
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    return crew_children


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes"

    def read():
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    read.path = str(path)
    return read


@pytest.fixture
def make_crew(notes):
    crews, pids = [], set()

    def make(target, count=1, hang_s=30.0, pauses=QUICK, **settings):
        settings.setdefault("arguments", lambda index: (notes.path,))
        news = []
        crew = Crew(target, count, hang_s=hang_s, say=news.append, pauses=pauses, **settings)
        crew.news = news
        crews.append(crew)
        crew.start()
        return crew

    yield make
    for crew in crews:
        pids.update(crew.pids().values())
        crew.stop(0.0)
        assert crew.alive() == 0
    pids.update(note["pid"] for note in notes())
    assert not [pid for pid in pids if is_running(pid)]


def begun(notes, count):
    return lambda: [note for note in notes() if "index" in note][count - 1 : count]


def wait_until_begun(crew, notes, count):
    """Until so many have said so, and the crew knows of it and is complete."""
    (last,) = eventually(begun(notes, count))
    eventually(lambda: last["pid"] in crew.pids().values() and crew.alive() == len(crew._places))


def test_runs_all_and_stops_kindly(children, notes, make_crew):
    crew = make_crew(children.good, 3)
    wait_until_begun(crew, notes, 3)
    assert crew.alive() == 3
    assert sorted(note["index"] for note in notes()) == [0, 1, 2]
    assert not any(note["heavy"] for note in notes()), "children must not pay for what they do not use"
    assert sorted(crew.pids().values()) == sorted(note["pid"] for note in notes())
    began_s = time.monotonic()
    crew.stop(60.0)
    assert time.monotonic() - began_s < 30.0, "nobody had to be waited for"
    assert sorted(note["end"] for note in notes() if "end" in note) == [0, 1, 2]
    assert crew.alive() == 0
    assert dict(crew.restarts) == {"died": 0, "hung": 0}
    assert crew.news == []
    crew.stop(20.0)  # once more does no harm


def test_stop_is_heard_without_signals(children, notes, make_crew):
    crew = make_crew(children.deaf)
    eventually(begun(notes, 1))
    crew.stop(60.0)
    assert notes()[-1]["end"] == 0


def test_callbacks_are_called_once(children, notes, make_crew):
    crew = make_crew(children.told)
    eventually(begun(notes, 1))
    crew.stop(60.0)
    assert notes()[-1]["calls"] == ["early", "late"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_restart_after_kill(children, notes, make_crew, number):
    crew = make_crew(children.good, 2)
    wait_until_begun(crew, notes, 2)
    first = crew.pids()
    os.kill(first[1], number)
    wait_until_begun(crew, notes, 3)
    assert notes()[-1]["index"] == 1
    assert crew.alive() == 2
    assert crew.pids()[0] == first[0], "the other one goes on"
    assert crew.pids()[1] != first[1]
    assert dict(crew.restarts) == {"died": 1, "hung": 0}
    assert crew.news == [f"worker 1 died ({number.name}): a new one starts in 0.05 s"]
    assert not Path(f"/proc/{first[1]}").exists(), "a zombie is left"


def test_pauses_grow(children, notes, make_crew):
    crew = make_crew(children.dying, pauses=Pauses(first_s=0.1, longest_s=0.4, reset_after_s=60.0))
    eventually(begun(notes, 5))
    assert [text.rpartition(" in ")[2] for text in crew.news][:4] == ["0.1 s", "0.2 s", "0.4 s", "0.4 s"]
    times = [note["at_s"] for note in notes()]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert all(gap >= pause for gap, pause in zip(gaps, (0.1, 0.2, 0.4, 0.4), strict=False)), gaps
    eventually(lambda: crew.restarts["died"] >= 4)
    assert "exit code 3" in crew.news[0]


def test_pause_is_short_again_after_a_good_life(children, notes, make_crew):
    crew = make_crew(children.touching_late, pauses=Pauses(first_s=0.05, longest_s=9.0, reset_after_s=0.5))
    for life in (1, 2, 3):
        wait_until_begun(crew, notes, life)
        if life == 3:
            time.sleep(0.6)
            Path(f"{notes.path}.touch").touch()
            eventually(lambda: crew._places[0].child.seen)
        os.kill(crew.pids()[0], signal.SIGKILL)
        eventually(lambda life=life: len(crew.news) == life)
    assert [text.rpartition(" in ")[2] for text in crew.news] == ["0.05 s", "0.1 s", "0.05 s"]


def test_one_that_returns_has_finished(children, notes, make_crew):
    crew = make_crew(children.returning, 2)
    eventually(lambda: crew.finished() == 2)
    time.sleep(0.3)
    assert len(notes()) == 2
    assert crew.alive() == 0
    assert dict(crew.restarts) == {"died": 0, "hung": 0}
    assert crew.news == []


def test_reason_of_an_error_reaches_the_user(children, notes, make_crew, capfd):
    crew = make_crew(children.failing)
    eventually(lambda: crew.news)
    assert crew.news[0] == "worker 0 ended: the bridge is out: take the ferry: a new one starts in 0.05 s"
    crew.stop(0.0)
    assert "Traceback" not in capfd.readouterr().err


def test_hang_is_seen(children, notes, make_crew):
    crew = make_crew(children.hanging, hang_s=0.4, start_s=20.0)
    eventually(begun(notes, 2))
    first, second = notes()[:2]
    assert second["at_s"] - first["at_s"] > 0.4
    eventually(lambda: crew.restarts["hung"] >= 1)
    assert crew.restarts["died"] == 0
    assert crew.news[0] == "worker 0 hung and was killed: a new one starts in 0.05 s"
    assert not is_running(first["pid"])


def test_start_may_take_longer_but_not_for_ever(children, notes, make_crew):
    began_s = time.monotonic()
    crew = make_crew(children.never_there, hang_s=0.1, start_s=0.8)
    eventually(lambda: crew.news)
    assert time.monotonic() - began_s > 0.8
    assert "hung" in crew.news[0]


def test_frozen_child_is_replaced(children, notes, make_crew):
    crew = make_crew(children.good, 2, hang_s=4.0)
    wait_until_begun(crew, notes, 2)
    eventually(lambda: all(place.child.seen for place in crew._places))
    first = crew.pids()
    os.kill(first[0], signal.SIGSTOP)
    wait_until_begun(crew, notes, 3)
    assert notes()[-1]["index"] == 0
    assert not is_running(first[0])
    assert dict(crew.restarts) == {"died": 0, "hung": 1}
    assert crew.pids()[1] == first[1]


@pytest.mark.parametrize("frozen", [False, True])
def test_stop_of_a_child_that_does_not_listen(children, notes, make_crew, frozen):
    crew = make_crew(children.stubborn)
    eventually(begun(notes, 1))
    if frozen:
        os.kill(notes()[0]["pid"], signal.SIGSTOP)
    began_s = time.monotonic()
    crew.stop(0.4)
    assert 0.4 <= time.monotonic() - began_s < 30.0
    assert crew.alive() == 0
    assert not is_running(notes()[0]["pid"])


def test_patience_can_end_earlier(children, notes, make_crew):
    crew = make_crew(children.stubborn)
    eventually(begun(notes, 1))
    began_s = time.monotonic()
    crew.begin_stop(60.0)
    time.sleep(0.2)
    assert crew.alive() == 1
    crew.stop(0.1)
    assert time.monotonic() - began_s < 30.0
    assert crew.alive() == 0


def test_children_leave_interrupts_to_the_parent(children, notes, make_crew):
    crew = make_crew(children.good)
    eventually(lambda: crew.pids())
    for _ in range(20):  # from its very first moment
        os.kill(crew.pids()[0], signal.SIGINT)
        time.sleep(0.02)
    eventually(begun(notes, 1))
    os.kill(crew.pids()[0], signal.SIGINT)
    time.sleep(0.2)
    assert crew.alive() == 1
    assert crew.news == []


def test_a_polite_kill_from_outside_ends_a_child_for_good(children, notes, make_crew):
    crew = make_crew(children.good, 2)
    wait_until_begun(crew, notes, 2)
    os.kill(crew.pids()[1], signal.SIGTERM)
    eventually(lambda: crew.finished() == 1)
    assert notes()[-1]["end"] == 1
    time.sleep(0.3)
    assert crew.alive() == 1


def test_arguments_are_made_for_every_start_and_their_pipes_given_away(children, notes, make_crew):
    pipes = []

    def arguments(index):
        if len(pipes) == 1:
            pipes.append(None)
            raise OSError("too many files")
        ours, theirs = multiprocessing.Pipe()
        pipes.append((ours, theirs))
        return notes.path, theirs

    crew = make_crew(children.plays_on_a_pipe, arguments=arguments)
    wait_until_begun(crew, notes, 1)
    ours, theirs = pipes[0]
    assert ours.recv_bytes() == b"0"
    assert theirs.closed
    os.kill(crew.pids()[0], signal.SIGKILL)
    assert ours.poll(60.0)
    with pytest.raises(EOFError):
        ours.recv_bytes()
    wait_until_begun(crew, notes, 2)
    assert pipes[2][0].recv_bytes() == b"0"
    assert "cannot be started" in crew.news[1]
    assert "too many files" in crew.news[1]
    assert dict(crew.restarts) == {"died": 0, "hung": 0, "failed": 1}


def test_news_that_cannot_be_told_harm_nobody(children, notes):
    def say(text):
        raise RuntimeError("no screen")

    crew = Crew(children.good, 1, arguments=lambda index: (notes.path,), hang_s=9.0, say=say, pauses=QUICK)
    crew.start()
    try:
        eventually(begun(notes, 1))
        os.kill(notes()[0]["pid"], signal.SIGKILL)
        eventually(begun(notes, 2))
    finally:
        crew.stop(0.0)


def test_target_must_be_importable():
    with pytest.raises(MisuseError, match="function of a module"):
        Crew(lambda life: None, 1, arguments=lambda index: (), hang_s=1.0)


@pytest.mark.parametrize("target", ["good", "stubborn"])
@pytest.mark.parametrize("end", ["kill", "term", "exit"])
def test_no_child_outlives_its_parent(children, notes, target, end):
    command = [sys.executable, children.__file__, notes.path, target]
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
        "import crew_children\n"
        "sys.platform = 'elsewhere'\n"
        "if __name__ == '__main__':\n"
        "    crew_children.parent(*sys.argv[1:])\n"
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
