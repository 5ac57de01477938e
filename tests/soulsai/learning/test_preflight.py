"""The preflight as a whole: what is said, what is refused, and that every preset passes."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec.structs import replace

from soulsai.config import Config, load_preset, preset_names, with_settings
from soulsai.errors import ConfigError, PreflightError
from soulsai.learning.preflight import Finding, preflight, verdict
from soulsai.learning.preflight.exploits import exploit_findings
from soulsgym.errors import SoulsError

SMALL = ["algorithm=q", "fight.number=8"]


@pytest.fixture
def no_fights(monkeypatch):
    """Leave out the one check that takes a second."""
    monkeypatch.setattr(verdict, "exploit_findings", lambda config: iter(()))


def said_about(config: Config) -> list[str]:
    said: list[str] = []
    preflight(config, said.append)
    return said


def refusal_of(config: Config) -> str:
    with pytest.raises(PreflightError) as caught:
        preflight(config, lambda text: None)
    return str(caught.value)


def exploits_once(config: Config) -> tuple[Finding, ...]:
    """Presets that share fight, reward and discount share the answer."""
    if config.world == "gym":
        return ()
    settings = [
        f"ppo.gamma={config.ppo.gamma if config.algorithm == 'ppo' else config.q.gamma}",
        f"world={config.world}",
    ]
    settings += [f"fight.{key}={str(getattr(config.fight, key)).lower()}" for key in ("phase", "full", "no_hit")]
    settings += [
        f"reward.preset={config.reward.preset}",
        f"starts.random_pose={str(config.starts.random_pose).lower()}",
    ]
    assert not config.reward.weights
    return _by_settings(tuple(settings))


@cache
def _by_settings(settings: tuple[str, ...]) -> tuple[Finding, ...]:
    return tuple(exploit_findings(with_settings(Config(), list(settings))))


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_passes_and_recipes_accept_exactly_what_is_found(name, monkeypatch):
    if name.startswith("lunarlander"):
        pytest.importorskip("Box2D")
    monkeypatch.setattr(verdict, "exploit_findings", exploits_once)
    config = load_preset(name)
    said = [line.split(": ")[:2] for line in said_about(config)]
    assert {words[1] for words in said if words[0] == "accepted"} == set(config.run.accept)


def test_a_finding_is_said_and_refused_with_its_reason_and_how_to_accept_it(no_fights):
    config = with_settings(Config(), [*SMALL, "q.learning_rate=0.5"])
    said: list[str] = []
    with pytest.raises(PreflightError) as caught:
        preflight(config, said.append)
    text = "learning-rate: q.learning_rate = 0.5 is not within 1e-06 to 0.01; begin with 1e-3"
    assert said[1:] == []
    assert str(caught.value) == (
        f"the preflight found: (1) {text}; if this is intended, use --set run.accept='[\"learning-rate\"]' "
        "or --accept-all"
    )
    assert isinstance(caught.value, SoulsError)


def test_an_accepted_finding_is_said_and_passes(no_fights):
    config = with_settings(Config(), [*SMALL, "q.learning_rate=0.5", 'run.accept=["learning-rate"]'])
    assert said_about(config)[1].startswith("accepted: learning-rate: q.learning_rate = 0.5")


def test_the_way_to_accept_keeps_what_is_accepted_and_works(no_fights):
    settings = [*SMALL, "q.learning_rate=0.5", "actions.masks=false", 'run.accept=["mask-unused"]']
    text = refusal_of(with_settings(Config(), settings))
    assert "mask-unused:" not in text
    accept = text.split("--set ")[1].split(" or ")[0].replace("'", "")
    assert accept == 'run.accept=["mask-unused", "learning-rate"]'
    said_about(with_settings(Config(), [*settings, accept]))


def test_several_findings_are_numbered(no_fights):
    text = refusal_of(with_settings(Config(), [*SMALL, "q.learning_rate=0.5", "actions.masks=false"]))
    assert "(1) learning-rate: " in text
    assert "(2) mask-unused: " in text
    assert """run.accept='["learning-rate", "mask-unused"]'""" in text


def test_a_hint_is_said_and_does_not_refuse(no_fights):
    said = said_about(with_settings(Config(), [*SMALL, "q.n_step=3"]))
    assert [line.partition(": q.")[0] for line in said[1:]] == ["hint: n-step-uncorrected"]


def test_the_memory_of_the_replay_is_always_said(no_fights):
    (line,) = said_about(with_settings(Config(), SMALL))
    assert line == "replay needs 0.3 GB when full"
    (small,) = said_about(with_settings(Config(), [*SMALL, "replay.capacity=1000"]))
    assert small == "replay needs 0.001 GB when full"
    assert said_about(Config()) == []


def test_an_unknown_name_in_accept_is_refused_with_the_nearest():
    with pytest.raises(
        ConfigError, match=r'run\.accept has the unknown finding "mask-unsed"; did you mean "mask-unused"\?'
    ):
        preflight(replace(Config(), run=replace(Config().run, accept=("mask-unsed",))), lambda text: None)
    with pytest.raises(ConfigError, match='"zzz"; there are options-cancel, '):
        preflight(replace(Config(), run=replace(Config().run, accept=("zzz",))), lambda text: None)


def test_an_exploitable_reward_is_refused():
    text = refusal_of(with_settings(Config(), ["reward.weights.step=0.1"]))
    assert "(1) reward-exploit: jumping off the cliff scores -" in text
    assert "the agent will learn to jump off the cliff" in text
