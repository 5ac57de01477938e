"""Calibration against bosses whose numbers are known to the test alone."""

import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tomli_w

from soulsgym.calibration.calibrate import calibrate
from soulsgym.calibration.decisions import Decision, _cooldowns
from soulsgym.calibration.estimate import Estimate, number_at, overlay_of
from soulsgym.calibration.report import held_out_fidelity
from soulsgym.errors import DataError, RecordingError
from soulsgym.recordings.recording import Recording
from soulsgym.spec import load_fight
from soulsgym.spec.draw import draw_spec
from soulsgym.spec.fight import read_files
from soulsgym.spec.overlay import overlay

TICK_S = 0.097 / 6


def of_kind(calibration, content, *keys, n=1):
    """Estimates of these keys that were seen so often, with the true numbers."""
    return [(one, number_at(content, one.path)) for one in calibration.estimates if one.path[-1] in keys and one.n >= n]


def errors(pairs):
    return np.array([abs(one.value - true) for one, true in pairs])


def share_inside(pairs):
    return np.mean([one.low <= true <= one.high for one, true in pairs])


def test_times_are_found_to_the_tick(drawn):
    _, calibration, content = drawn
    pairs = of_kind(calibration, content, "link_s", "label_end_s", "end_s", n=3)
    assert len(pairs) > 30
    assert all(true is not None for _, true in pairs)  # no link where a label only ended
    assert np.median(errors(pairs)) < TICK_S / 2
    assert np.quantile(errors(pairs), 0.95) < TICK_S
    assert 0.75 <= share_inside(pairs) <= 1.0
    before = np.array([abs(one.before - true) for one, true in pairs])
    assert np.median(before[before > 0]) > 5 * np.median(errors(pairs))


def test_blows_are_found_to_the_tick_and_cost_what_they_cost(drawn, files):
    _, calibration, content = drawn
    pairs = of_kind(calibration, content, "from_s", n=3)
    assert len(pairs) > 10
    assert np.median(errors(pairs)) < TICK_S / 2
    assert share_inside(pairs) > 0.8
    costs = of_kind(calibration, content, "attack", "damage")
    assert len(costs) > 15
    assert all(one.low - 1e-3 <= true <= one.high + 1e-3 for one, true in costs if one.n >= 2)


def test_areas_lie_in_their_intervals(drawn):
    _, calibration, content = drawn
    pairs = of_kind(calibration, content, "reach_m", "half_width_m", "inner_m")
    assert len(pairs) > 8
    assert share_inside(pairs) > 0.7
    moved = [(one, true) for one, true in pairs if one.high - one.low < 0.5]
    assert np.median(errors(moved)) < 0.25


def test_motion_is_found(drawn):
    _, calibration, content = drawn
    pairs = of_kind(calibration, content, "forward_m", n=40)
    assert len(pairs) > 10
    off = [np.abs(np.array(one.value) - true).mean() for one, true in pairs]
    assert np.median(off) < 0.01
    guessed = [(np.array(one.value), np.array(true), np.array(one.before)) for one, true in pairs if one.moves]
    assert guessed
    assert sum(np.abs(value - true).sum() for value, true, _ in guessed) < 0.4 * sum(
        np.abs(before - true).sum() for _, true, before in guessed
    )


def test_turning_is_found(drawn):
    _, calibration, content = drawn
    pairs = [(one, true) for one, true in of_kind(calibration, content, "deg_per_s", n=5) if true > 0]
    assert len(pairs) > 10
    off = np.median([abs(np.log(one.value / true)) for one, true in pairs])
    before = np.median([abs(np.log(one.before / true)) for one, true in pairs])
    assert off < 0.01
    assert off < before / 10
    assert share_inside(pairs) > 0.9


def test_what_is_not_drawn_is_found_too(restless):
    """Costs behind the shield, times of going sideways."""
    _, calibration = restless
    found = {one.key: one for one in calibration.estimates}
    costs = [one for one in calibration.estimates if one.path[-1] == "guard_stamina"]
    assert len(costs) >= 3
    assert all(one.moves and one.low <= 21.5 <= one.high and one.high - one.low <= 2.0 for one in costs)
    near = found["phase.1.after.near_s"]
    assert near.value == pytest.approx([1.0, 1.6], abs=0.1)
    assert near.low[0] <= 1.0 <= near.high[0]
    assert near.low[1] <= 1.6 <= near.high[1]


def test_cooldowns_are_found_from_choices():
    """Choices drawn with a cooldown of 6.5 s, where the file says 8."""
    spec, generator = load_fight("iudex"), np.random.default_rng(4)
    names, weights = ["thrust", "chop", "sweep"], np.array([75.0, 10.0, 10.0])
    bouts = []
    for _ in range(60):
        ready, decisions = dict.fromkeys(names, 0.0), []
        for time_s in np.cumsum(generator.uniform(1.5, 4.5, 12)):
            now = [min(w, 1.0) if ready[n] > time_s else w for n, w in zip(names, weights, strict=True)]
            act = str(generator.choice(names, p=np.array(now) / sum(now)))
            ready[act] = time_s + 6.5
            decisions.append(Decision(1, round(time_s / TICK_S), 5.0, 0.0, act, 0, 0, False))
        bouts.append((None, decisions))
    choices = SimpleNamespace(spec=spec, decisions=bouts)
    found = {one.path[3]: one for one in _cooldowns(("phase", "1"), spec.boss.phases[0], 1, choices)}
    assert found["thrust"].value == pytest.approx(6.5, abs=0.3)
    assert found["thrust"].low <= 6.5 <= found["thrust"].high < 8.0
    assert found["thrust"].n > 50


def test_the_character_is_measured_beside_his_file(restless, drawn):
    hidden, calibration = restless
    found = {one.key: one for one in calibration.character}
    for key, true in (
        ("walk.full_m[0]", hidden.player.walk.full_m[0]),
        ("walk.full_m[2]", hidden.player.walk.full_m[2]),
        ("body.sp_per_s", 60.0),
        ("roll.sp_cost", 20.0),
    ):
        assert found[key].moves, key
        assert found[key].value == pytest.approx(true, rel=0.03), key
    assert "sp_per_s" not in calibration.text()
    _, own, _ = drawn
    for one in own.character:
        near = 0.01 if one.path[0] == "roll" and one.path[1] != "sp_cost" else 0.12
        assert one.value == pytest.approx(one.before, rel=near), one.key
        assert near == 0.12 or not one.moves


def test_the_shares_of_a_chase_are_found(drawn):
    _, calibration, content = drawn
    pairs = {one.path[1]: (one, true) for one, true in of_kind(calibration, content, "chase_share")}
    one, true = pairs["beast_leap"]
    assert np.sum(one.value) == pytest.approx(np.sum(true), rel=0.05)
    assert abs(np.sum(one.value) - np.sum(true)) < abs(np.sum(one.before) - np.sum(true)) / 2


def test_decisions_stay_near_the_file_where_little_was_seen(drawn, files):
    _, calibration, content = drawn
    for one in calibration.estimates:
        if one.path[-1] == "weights" and one.n < 5:
            assert not one.moves
    weights = [one for one in calibration.estimates if one.path[-1] == "weights"]
    inside = []
    for one in weights:
        true = [weight for name, weight in number_at(content, one.path).items() if name not in ("turn", "source")]
        inside += [low <= weight <= high for low, weight, high in zip(one.low, true, one.high, strict=True)]
    assert np.mean(inside) > 0.8


def test_its_own_recording_moves_nothing_that_is_right(files, record):
    """A boss who is as the file says comes out as the file says."""
    calibration = calibrate([record(load_fight("iudex"), ("duellist", "random"), steps=400)], files)
    numbers = [one for one in calibration.estimates if isinstance(one.value, float) and one.n >= 3]
    assert np.mean([one.moves for one in numbers]) < 0.2


def test_the_report_measures_on_fights_that_were_kept_out(drawn):
    recording, calibration, _ = drawn
    rows = held_out_fidelity([recording], calibration)
    found = {name.split()[0]: (old.value, new.value) for name, old, new in rows}
    assert found["M8"][1] < found["M8"][0]
    assert found["M9"][1] < found["M9"][0]


def test_the_overlay_is_a_variant_with_measured_numbers(drawn, files, tmp_path):
    _, calibration, _ = drawn
    file = tmp_path / "mine.toml"
    file.write_text(calibration.text())
    spec = load_fight("iudex", str(file))
    assert spec.boss == replace(calibration.spec.boss, known=spec.boss.known)
    for one in calibration.estimates:
        if isinstance(one.value, float) and one.path[0] == "move":
            assert spec.boss.sources[one.key] == "measured"
            low, high = spec.boss.known[one.key]
            assert low <= (one.value if one.moves else one.before) <= high
    assert "guess" in spec.boss.sources.values()


def test_what_is_known_is_drawn_within_its_interval_and_the_rest_as_before(drawn, tmp_path):
    _, calibration, _ = drawn
    file = tmp_path / "boss.toml"
    whole = overlay(calibration.files.content, calibration.overlay) | {"known": calibration.known}
    file.write_text(tomli_w.dumps(whole))
    own = read_files(str(file))
    spreads = {key: [] for key in calibration.known}
    for seed in range(12):
        spec = draw_spec(own, seed)
        moves = {move.name: move for move in spec.boss.moves}
        for key, (_, low, high) in calibration.known.items():
            parts = key.split(".")
            if len(parts) == 3 and parts[0] == "move":
                value = getattr(moves[parts[1]], parts[2])
                assert low - 1e-6 <= value <= high + 1e-6
                spreads[key].append(value)
    moved = [values for values in spreads.values() if values and max(values) > min(values)]
    assert len(moved) > 20


@pytest.mark.parametrize(
    ("row", "words"),
    [("[1, 2]", "3 numbers"), ("[3, 5.0, 6.0]", "does not hold"), ('["a", 1, 2]', "3 numbers")],
)
def test_a_bad_interval_is_refused(tmp_path, row, words):
    file = tmp_path / "mine.toml"
    file.write_text(f'[known]\n"body.hp" = {row}\n')
    with pytest.raises(DataError, match=words):
        load_fight("iudex", str(file))
    file.write_text('[known]\n"body.wings" = [1, 2, 3]\n')
    with pytest.raises(DataError, match="names no number"):
        load_fight("iudex", str(file))


def test_an_unknown_attack_becomes_a_move(surprising):
    _, calibration, content = surprising
    move, true = calibration.overlay["move"]["new_attack3015"], content["move"]["surprise"]
    for key in ("link_s", "label_end_s", "end_s"):
        assert move[key] == pytest.approx(true[key], abs=0.02)
    blow = move["hit"]["blow_1"]
    assert blow["from_s"] == pytest.approx(0.9, abs=0.02)
    assert 2.3 < blow["reach_m"] < 4.5
    act = calibration.overlay["phase"]["1"]["act"]["new_attack3015"]
    assert {len(chain["links"]) for chain in act["chains"]} == {0, 1}
    assert any("new_attack3015" in rule["weights"] for rule in calibration.overlay["phase"]["1"]["rule"])
    assert calibration.spec.boss.move_index("new_attack3015") >= 0


def test_a_chain_more_is_found(surprising):
    """A thrust that chop may follow, which otherwise is an act of its own."""
    _, calibration, _ = surprising
    chains = calibration.overlay["phase"]["1"]["act"]["thrust"]["chains"]
    weights = {tuple(link["move"] for link in chain["links"]): chain["weight"] for chain in chains}
    assert 0.2 < weights["chop",] / sum(weights.values()) < 0.7
    assert calibration.spec.boss.moves[calibration.spec.boss.move_index("thrust")].link_s == pytest.approx(
        1.066, abs=0.02
    )


def test_another_threshold_is_found(surprising):
    _, calibration, _ = surprising
    (one,) = (one for one in calibration.estimates if one.path[-1] == "changes_at_hp_share")
    assert one.value == pytest.approx(0.8, abs=0.03)
    assert one.low <= 0.8 <= one.high


def test_recordings_that_tell_nothing_are_refused(drawn, files):
    recording, _, _ = drawn
    few = Recording(recording.fights[:30], recording.actions[:30], recording.episodes[:30], "few.npz")
    with pytest.raises(RecordingError, match=r"few\.npz: shows \d+ attacks"):
        calibrate([few], files)
    skipped = Recording(recording.fights[::3], recording.actions[::3], recording.episodes[::3], "skipped.npz")
    with pytest.raises(RecordingError, match=r"skipped\.npz: no fight has a record of every step"):
        calibrate([skipped], files)
    other = recording.fights.copy()
    other["boss_animation"][other["boss_animation"] < 16] = load_fight("iudex").boss_animations.index("LandDefault")
    with pytest.raises(RecordingError, match=r"other\.npz: \d+ of \d+ attacks are none of iudex's"):
        calibrate([Recording(other, recording.actions, recording.episodes, "other.npz")], files)


def test_an_estimate_is_written_only_where_the_file_is_wrong():
    content = {"move": {"a": {"link_s": 1.0, "label_end_s": 2.0, "end_s": 3.0, "source": {"*": "guess"}}}}
    near = Estimate(("move", "a", "link_s"), 1.01, 0.99, 1.02, 5, 1.0)
    assert overlay_of(content, [near])["move"]["a"] == {
        "link_s": 1.0,
        "source": {"*": "guess", "link_s": "measured"},
    }
    far = Estimate(("move", "a", "link_s"), 1.2, 1.19, 1.21, 5, 1.0)
    assert overlay_of(content, [far])["move"]["a"]["link_s"] == 1.2
    assert content["move"]["a"]["link_s"] == 1.0


def test_what_is_not_measured_makes_room_for_what_is(files, drawn):
    """A link or a blow after the file's end of the label or the move; and times that contradict each other."""
    _, calibration, _ = drawn
    late = [
        Estimate(("move", "beast_swat", "link_s"), 1.35, 1.34, 1.36, 9, 1.2),
        Estimate(("move", "punch", "hit", "fist", "to_s"), 2.3, 2.29, 2.31, 9, 0.95),
        Estimate(("move", "punch", "hit", "fist", "from_s"), 2.2, 2.19, 2.21, 9, 0.87),
        Estimate(("move", "bash", "link_s"), 1.3, 1.29, 1.31, 9, 1.02),
        Estimate(("move", "bash", "label_end_s"), 1.28, 1.27, 1.29, 9, 1.26),
    ]
    found = replace(calibration, estimates=tuple(late), additions={})
    swat, punch, bash = (found.overlay["move"][name] for name in ("beast_swat", "punch", "bash"))
    assert swat["link_s"] == swat["label_end_s"] == 1.35
    assert punch["end_s"] == punch["hit"]["fist"]["to_s"] == 2.3
    assert bash["link_s"] == bash["label_end_s"] == 1.28
    low, high = load_text(found.text()).boss.known["move.bash.link_s"]
    assert low <= 1.28 <= high


def load_text(text):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mine.toml"
        file.write_text(text)
        return load_fight("iudex", str(file))
