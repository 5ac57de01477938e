"""A short siege with everything in it. With SOULS_FAULTS=long in the environment there is one of three minutes, too."""

import json
import os

import pytest

from benchmarks import siege

SHORT, LONG = 0.5, 3.0


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("minutes", [SHORT, LONG])
def test_everything_holds(tmp_path, monkeypatch, minutes, capsys):
    if minutes == LONG and os.environ.get("SOULS_FAULTS") != "long":
        pytest.skip("takes minutes; it runs with SOULS_FAULTS=long")
    if minutes == SHORT:
        monkeypatch.setattr(siege, "SLOWED", 0.3)  # the rate is for a machine without other tests
    code = siege.main(["--minutes", str(minutes), "--report", str(tmp_path / "siege.json")])
    told = capsys.readouterr().out
    report = json.loads((tmp_path / "siege.json").read_text())
    assert code == 0, told
    assert all(report["held"].values())
    assert report["kills"]["learner"] == (1 if minutes == SHORT else 2)
    kinds = {attack.partition(":")[0] for attack in report["attacks"]}
    assert kinds == {*siege.OVER_REDIS, *siege.THROUGH_GATEWAY}
    assert {"invalid", "malformed"} <= report["counted"]["rows dropped"].keys()
    assert "left after revoke: nothing" in told


def memory(*megabytes):
    return [(float(at), "Redis", mb) for at, mb in enumerate(megabytes)]


def test_who_grows_is_noticed():
    assert siege.grown(memory(*[50.0] * 100)) == []
    assert siege.grown(memory(*[50.0] * 80, *[500.0] * 20)) == ["Redis has grown from 50 to 500 MB"]
    assert siege.grown([]) == ["nothing was weighed"]


def book(**changes):
    return {"total": {"sent": 10, "stored": 6, "dropped": {"invalid": 3}, "in_flight": 1}, "open": {}, "unreadable": {},
            "workers": [{"name": "evil-liar", "dropped": {"invalid": 3}}], "refused": {"evil-flood": {"quota": 5}},
            "gateway": {"dropped": {}, "refused": {"silent": 2}}} | changes  # fmt: skip


class Fake:
    """A siege that is over."""

    def __init__(self, returns=(20.0, 100.0), **seen):
        self.returns = lambda: returns
        all_three = [(float(at), who, 90.0) for at in range(10) for who in siege.MOST_MB]
        rates = {"peace": siege.Rate(1000, 10.0), "siege": siege.Rate(900, 10.0)}
        told = {"books": book(), "memory": all_three, "rates": rates, "attacks": {"liar: done": 3}}
        self.seen = siege.Seen(**told | seen)


def missed(fake):
    report = siege.report_of(fake, 1.0)
    assert ("MISSED" in siege.text_of(report)) == (not all(report["held"].values()))
    return [what for what, held in report["held"].items() if not held]


@pytest.mark.parametrize(
    ("fake", "what"),
    [
        (Fake(), []),
        (Fake(faults=["ann has ended by itself"]), ["learner alive, nothing broken"]),
        (Fake(returns=(20.0, 30.0)), ["learns"]),
        (Fake(returns=(0.0, 0.0)), ["learns"]),
        (Fake(books=book(open={"ann.1.abcdef": {"expected": 5, "found": 3}})), ["the counts close"]),
        (Fake(books=book(total={"sent": 11, "stored": 6, "dropped": {}, "in_flight": 1})), ["the counts close"]),
        (Fake(worked=["wedge: FLUSHALL"]), ["no attack worked"]),
        (Fake(attacks={}), ["no attack worked"]),
        (Fake(books=book(workers=[])), ["attacks are counted"]),
        (Fake(memory=[(0.0, who, 5000.0) for who in siege.MOST_MB]), ["memory is bounded"]),
        (Fake(rates={"peace": siege.Rate(1000, 10.0), "siege": siege.Rate(700, 10.0)}),
         ["honest workers keep 80% of their rate"]),
        (Fake(left=["user evil-liar"]), ["nothing is left after revoke"]),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_told(fake, what):
    assert missed(fake) == what
