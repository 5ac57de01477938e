"""Drawn variants: what moves, how far, and what never does."""

import json
import os
import shutil
import threading
import tomllib

import numpy as np
import pytest
import tomli_w

from soulsgym.errors import DataError, MisuseError
from soulsgym.sim.pack import pack
from soulsgym.spec import load_fight
from soulsgym.spec.draw import KINDS, MAX_STRENGTH, draw_variant, drawn_spec, write_new, write_overlay
from soulsgym.spec.fight import DATA
from soulsgym.spec.overlay import overlay

IUDEX = "bosses/iudex.toml"
IN_DATA = f"darksouls3/{IUDEX}"
MEASURED = ("measured", "public")
DRAWS = 100

pytestmark = pytest.mark.slow


def content_of(file):
    return tomllib.loads(file.read_text(encoding="utf-8"))


CONTENT = content_of(DATA / IN_DATA)


def numbers(table, path=""):
    """Every number of a table by its path as the loader knows it; lists and weights by the key they stand in."""
    for key, value in table.items():
        here = f"{path}.{key}" if path else key
        if key == "source" or isinstance(value, (str, bool)):
            continue
        if key == "chains":
            yield here, json.dumps([[row["weight"], [link["within_m"] for link in row["links"]]] for row in value])
        elif key == "weights":
            yield here, json.dumps(value)
        elif isinstance(value, dict):
            yield from numbers(value, here)
        elif isinstance(value, list) and isinstance(value[0], dict):
            for row, inner in enumerate(value):
                yield from numbers(inner, f"{here}[{row}]")
        else:
            yield here, json.dumps(value)


def drawn_content(seed, strength=1.0):
    return overlay(CONTENT, draw_variant("iudex", seed, strength))


def at(content, key):
    for part in key.split("."):
        content = content[int(part) if isinstance(content, list) else part]
    return content


# ---------------------------------------------------------------- what moves


@pytest.mark.parametrize("strength", [1.0, MAX_STRENGTH])
def test_no_measured_or_public_number_moves(spec, strength):
    before = dict(numbers(CONTENT))
    for seed in range(50):
        after = dict(numbers(drawn_content(seed, strength)))
        assert after.keys() == before.keys()
        moved = {path for path in before if float_of(before[path]) != float_of(after[path])}
        assert moved
        assert not [path for path in moved if spec.boss.sources[path] in MEASURED]


def float_of(text):
    """Numbers written as 2 and 2.0 are the same."""
    return json.loads(text, parse_int=float)


def test_every_guess_of_a_known_kind_moves(spec):
    """Over some draws; but for what is 0, and has no share to move by."""
    before = dict(numbers(CONTENT))
    moved = set()
    for seed in range(20):
        after = dict(numbers(drawn_content(seed)))
        moved |= {path for path in before if float_of(before[path]) != float_of(after[path])}
    kinds = {key for keys in KINDS.values() for key in keys}
    guesses = {
        path
        for path, source in spec.boss.sources.items()
        if source not in MEASURED and path.rsplit(".", 1)[-1] in kinds and np.any(np.ravel(float_of(before[path])))
    }
    assert {path for path in guesses - moved if not path.startswith(("draw.", "randomize."))} == set()
    assert len(guesses) > 50


def test_what_is_not_drawn_stays():
    changes = draw_variant("iudex", 1)
    assert changes.keys() == {"body", "opened", "phase", "move"}
    assert "hp" not in changes["body"]


def test_the_same_seed_draws_the_same():
    assert draw_variant("iudex", 5) == draw_variant("iudex", 5) != draw_variant("iudex", 6)
    assert drawn_spec("iudex", 5) == drawn_spec("iudex", 5)


def test_strength_0_changes_nothing(spec):
    drawn = drawn_spec("iudex", 5, 0.0)
    assert drawn == spec
    assert pack(drawn).tobytes() == pack(spec).tobytes()


def test_strength_scales_what_the_seed_draws():
    plain, half, full = (at(drawn_content(3, strength), "body.poise_recovery_s") for strength in (0.0, 0.5, 1.0))
    assert full != plain
    assert half - plain == pytest.approx((full - plain) / 2.0, rel=1e-3)


def test_a_drawn_spec_says_what_it_is():
    drawn = drawn_spec("iudex", 12, 0.5)
    assert (drawn.boss_name, drawn.variant) == ("iudex", "drawn from seed 12 at strength 0.5")


# ---------------------------------------------------------------- it always loads


@pytest.mark.parametrize("strength", [1.0, MAX_STRENGTH])
def test_every_draw_can_be_fought(spec, strength):
    """What the loader checks, and that a blow that came before a follow-up still does."""
    plain = {(move.name, hit.name): (move, hit) for move in spec.boss.moves for hit in move.hits}
    for seed in range(DRAWS):
        boss = drawn_spec("iudex", seed, strength).boss
        for move in boss.moves:
            for hit in move.hits:
                old, blow = plain[move.name, hit.name]
                assert hit.to_s - hit.from_s == pytest.approx(blow.to_s - blow.from_s, abs=1e-6)
                for key in ("link_s", "label_end_s", "end_s"):
                    if getattr(old, key) >= blow.to_s:
                        assert getattr(move, key) >= hit.to_s, (seed, move.name, key)


LOWEST = {
    "body.poise_recovery_s": 0.1,
    "opened.damage_taken_factor": 1.0,
    "move.punch.hit.fist.attack": 1,
    "move.beast_throw.throw.last.attack": 1,
    "move.punch.hit.fist.from_s": 0.0,
    "phase.1.after.near_s": [0.0, 0.0],
}
HIGHEST = {
    "body.radius_m": 10.0,
    "body.turn_deg_per_s": 3600.0,
    "body.turn_animation_beyond_deg": 180.0,
    "body.turn_around_beyond_deg": 180.0,
    "opened.riposte_facing_deg": 180.0,
    "move.punch.hit.fist.attack": 1e6,
    "move.punch.hit.fist.arc_deg": [-180.0, 180.0],
    "move.punch.hit.fist.from_s": 59.9,
    "move.punch.hit.fist.to_s": 60.0,
    "move.punch.end_s": 60.0,
    "move.punch.track.aim.deg_per_s": 3600.0,
    "move.swing.hit.sweep.arc_deg": [360.0, -360.0],
    "move.swing.hit.sweep.blade_deg": 180.0,
    "move.swing.hit.sweep.reach_m": 1e6,
    "move.swing.hit.sweep.inner_m": 1e6,
    "move.leap.motion.chase_share": [0.999],
    "phase.1.rule.5.weights.thrust": 1e6,
    "phase.1.act.thrust.after_odds": 1.0,
    "phase.1.after.far_s": [0.0, 1e6],
}
"""Numbers at the ends of what a file may hold."""


@pytest.mark.parametrize("strength", [1.0, MAX_STRENGTH])
@pytest.mark.parametrize("numbers_at_the_end", [{}, LOWEST, HIGHEST], ids=["plain", "lowest", "highest"])
def test_extremes_load(rich, tmp_path, monkeypatch, numbers_at_the_end, strength):
    """All numbers drawn at one end of their range, with the widest bounds and everything a guess."""
    content = content_of(rich / IN_DATA)
    widest = {"hit_shift_s": 1.0, "weight": 10.0}
    content["draw"] = {key: widest.get(key, 0.45) for key in content["draw"]} | {"source": "guess"}
    for path, value in numbers_at_the_end.items():
        holder, key = path.rsplit(".", 1)
        at(content, holder)[key] = value
    folder = tmp_path / "extreme"
    shutil.copytree(rich, folder)
    (folder / IN_DATA).write_text(tomli_w.dumps(content), encoding="utf-8")
    plain = load_fight("iudex", data=folder)
    for end in (-1.0, 1.0):
        monkeypatch.setattr(np.random, "default_rng", lambda *_, end=end: Fixed(end))
        drawn = drawn_spec("iudex", 0, strength, folder)
        assert drawn != plain
        pack(drawn)


def test_a_move_ends_no_earlier_than_it_may_be_broken_off(rich):
    plain, lengths = content_of(rich / IN_DATA), []
    [interrupt] = plain["phase"]["1"]["interrupt"]
    for seed in range(50):
        boss = drawn_spec("iudex", seed, MAX_STRENGTH, rich).boss
        lengths.append(boss.moves[boss.move_index(interrupt["moves"][0])].end_s)
    assert min(lengths) == interrupt["at_s"] < max(lengths)


@pytest.mark.parametrize("name", ["rule", "weights", "source", "chains", "damage"])
def test_tables_may_have_any_name(data, name):
    """A blow, a stretch of turning or a move that is called as a key is."""
    move = data.get(IUDEX, "move.punch") | {"source": "guess"}
    fist, aim = move["hit"]["fist"] | {"source": "guess"}, move["track"]["aim"]
    content = data.content(IUDEX)
    act = "quick" if name == "source" else name  # no weight can be called so
    content["move"][act] = move | {"hit": {name: fist}, "track": {name: aim}}
    content["phase"]["1"]["act"][act] = {"cooldown_s": 8.0, "after_odds": 0.5, "source": "guess"}
    weights = {act: 5.0, "turn": 1.0, "source": "guess"}
    content["phase"]["1"]["rule"].append({"weights": weights, "source": "guess"})
    data.write(IUDEX, content)
    drawn = draw_variant("iudex", 3, data=data.root)
    assert drawn["move"][act]["hit"][name]["reach_m"] != fist["reach_m"]
    assert drawn["move"][act]["track"][name]["deg_per_s"] != aim["deg_per_s"]
    assert drawn["phase"]["1"]["act"][act].keys() == {"cooldown_s", "after_odds"}
    assert drawn["phase"]["1"]["rule"][-1]["weights"].keys() == {act, "turn"}
    drawn_spec("iudex", 3, data=data.root)


def test_draws_load_whatever_is_measured(rich, tmp_path):
    """Each number of the moves measured or guessed by the toss of a coin."""
    folder = tmp_path / "mixed"
    shutil.copytree(rich, folder)
    generator = np.random.default_rng(0)

    def mix(table):
        keys = [key for key, value in table.items() if isinstance(value, (int, float, list)) and key != "chains"]
        table["source"] = {"*": "guess"} | {key: "measured" for key in keys if generator.random() < 0.5}
        for inner in table.values():
            if isinstance(inner, dict) and "source" in inner:
                mix(inner)
            elif isinstance(inner, dict):
                for one in inner.values():
                    if isinstance(one, dict):
                        mix(one)

    for seed in range(40):
        content = content_of(rich / IN_DATA)
        for move in content["move"].values():
            mix(move)
        (folder / IN_DATA).write_text(tomli_w.dumps(content), encoding="utf-8")
        drawn_spec("iudex", seed, MAX_STRENGTH, folder)


class Fixed:
    def __init__(self, number):
        self.number = number

    def uniform(self, low, high):
        return self.number


# ---------------------------------------------------------------- distributions


SEEDS = range(400)


def written(folder, content):
    """A copy of the data files with another boss, of whom every number is a guess."""
    shutil.copytree(DATA, folder)
    text = tomli_w.dumps(content)
    for source in ("measured", "public", "derived"):
        text = text.replace(f'"{source}"', '"guess"')
    (folder / IN_DATA).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def guessed(tmp_path_factory):
    """Data files in which every number of the boss is a guess, and one blow has its damage written down."""
    damage = {"move": {"grab": {"hit": {"hand": {"damage": 40}}}}}
    return written(tmp_path_factory.mktemp("guessed") / "data", overlay(CONTENT, damage))


RICH = """
[move.run]
animation = "WalkFrontBattle"
kind = "walk"
label_end_s = 9.0
end_s = 9.0
source = "guess"

[move.hop]
animation = "FallingDefault"
kind = "hop"
label_end_s = 0.6
end_s = 0.6
source = "guess"
motion = { first_s = 0.1, step_s = 0.1, forward_m = [-1.0, -1.0], source = "guess" }
stretch.back = { from_s = 0.1, to_s = 0.6, arrive_m = 1.0, range_m = [1.0, 2.0], reference_m = 2.0, source = "guess" }

[phase.1.act.thrust]
run = { from_m = 8.0, chance = 0.5, always_from_m = 11.0, approach_m = 7.0 }

[phase.1.act.hop]
cooldown_s = 5.0
after_odds = 0.0
room_m = 2.0
then = { thrust = 1.0 }
then_within_deg = 120.0
source = "guess"

[[phase.1.interrupt]]
moves = ["punch"]
act = "thrust"
source = "guess"
"""
"""What Iudex does not do, but a boss may."""


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """Data files of a boss who does everything, and of whom every number is a guess."""
    content = overlay(CONTENT, tomllib.loads(RICH))
    content["phase"]["1"]["interrupt"][0]["at_s"] = content["move"]["punch"]["end_s"]
    return written(tmp_path_factory.mktemp("rich") / "data", content)


@pytest.fixture(scope="module")
def draws(guessed):
    plain = content_of(guessed / IN_DATA)
    return [plain, *(overlay(plain, draw_variant("iudex", seed, data=guessed)) for seed in SEEDS)]


def factors_of(draws, *keys):
    """By path, how many times the number is what it was, one for each draw; of a list its largest number."""
    columns = {}
    for path, value in numbers(draws[0]):
        if path.rsplit(".", 1)[-1] in keys and not path.startswith(("draw.", "randomize.")):
            plain = np.ravel(float_of(value))
            place = abs(plain).argmax()
            if plain[place]:
                columns[path] = np.array([np.ravel(at(draw, path))[place] for draw in draws[1:]]) / plain[place]
    return columns


PRESENT = {path.rsplit(".", 1)[-1] for path, _ in numbers(CONTENT) if not path.startswith(("draw.", "randomize."))}


@pytest.mark.parametrize(
    ("kind", "key"), [(kind, key) for kind, keys in KINDS.items() if kind != "weight" for key in keys if key in PRESENT]
)
def test_draws_fill_their_range_evenly(draws, kind, key):
    columns = factors_of(draws, key)
    assert columns
    share = draws[0]["draw"][kind]
    for path, factors in columns.items():
        least, most = ((factor - 1.0) / share for factor in room_of(draws[0], path))
        low, high = max(least, -1.0), min(most, 1.0)
        units = (factors - 1.0) / share
        assert low - 1e-3 <= units.min() < low + 0.1, path
        assert high - 0.1 < units.max() <= high + 1e-3, path
        # Of 400 even draws from -1 to 1 as many lie between the ends as there is room, with a deviation of at most
        # 0.025. The mean of 200 has one of 0.041 times half the room, that of the squares one of 0.021.
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        inside = units[(units > low + 1e-3) & (units < high - 1e-3)]
        assert len(inside) / len(units) == pytest.approx(half, abs=0.12), path
        even = (inside - middle) / half
        assert abs(even.mean()) < 0.2, path
        assert (even**2).mean() == pytest.approx(1.0 / 3.0, abs=0.1), path


def room_of(content, path):
    """By which factors the number, of a list the largest, may be multiplied; what would be beyond is cut.

    An arc ends at a full turn, or all round if nothing sweeps; an opening never hurts him less.
    """
    holder, key = path.rsplit(".", 1)
    table = at(content, holder)
    plain = abs(np.ravel(table[key])).max()
    widest = {
        "arc_deg": 360.0 if table.get("sweep") else 180.0,
        "blade_deg": 180.0,
        "riposte_facing_deg": 180.0,
        "turn_animation_beyond_deg": 180.0,
        "turn_around_beyond_deg": 180.0,
        "after_odds": 1.0,
    }
    lowest = {"damage_taken_factor": 1.0}
    return lowest.get(key, 0.0) / plain, widest.get(key, np.inf) / plain


@pytest.mark.parametrize(
    "keys",
    [
        ("reach_m", "half_width_m", "offset_m"),
        ("reach_m", "attack"),
        ("forward_m", "deg_per_s"),
        ("approach_m", "near_s"),
    ],
)
def test_moves_are_drawn_apart_from_each_other(draws, keys):
    """The correlation of 400 pairs has a deviation of 0.05; all numbers that share a factor count once."""
    columns = {}
    for path, factors in factors_of(draws, *keys).items():
        owner = path.split(".track.")[0] if "deg_per_s" in keys else path
        columns[owner if "deg_per_s" in path else path] = factors
    between = np.corrcoef(np.array(list(columns.values())))
    off = between[~np.eye(len(between), dtype=bool)]
    assert len(columns) > 5
    assert abs(off).max() < 0.26
    assert off.std() < 0.065


def test_numbers_of_a_move_that_belong_together_share_a_factor(draws):
    for keys, owner in ((("forward_m", "right_m"), ".motion."), (("deg_per_s",), ".track.")):
        by_move = {}
        for path, factors in factors_of(draws, *keys).items():
            by_move.setdefault(path.split(owner)[0], []).append(factors)
        shared = [columns for columns in by_move.values() if len(columns) > 1]
        assert shared
        for columns in shared:
            assert np.allclose(columns, columns[0], rtol=1e-4)


def attacks(draws):
    """Of every move with blows: its content before, and in each draw."""
    for name, move in draws[0]["move"].items():
        if "hit" in move:
            yield name, move, [draw["move"][name] for draw in draws[1:]]


def test_all_blows_of_a_move_shift_by_one_time(draws):
    several = 0
    for name, move, drawn in attacks(draws):
        shifts = np.array(
            [[new["hit"][hit][key] - blow[key] for hit, blow in move["hit"].items() for key in ("from_s", "to_s")]
             for new in drawn]
        )  # fmt: skip
        assert np.allclose(shifts, shifts[:, :1], atol=1e-9), name
        assert abs(shifts).max() <= 0.12 + 1e-9, name
        assert shifts.min() < -0.11, name
        assert shifts.max() > 0.11, name
        assert abs(shifts.mean()) < 0.025, name
        several += len(move["hit"]) > 1
    assert several


def test_recovery_is_drawn_from_the_last_blow_on(draws):
    """One factor for follow-up, label and end of a move; where turning goes on longer, he is not free before."""
    looked_at = 0
    for name, move, drawn in attacks(draws):
        last_s = max(blow["to_s"] for blow in move["hit"].values())
        turning_s = max((track["to_s"] for track in move.get("track", {}).values()), default=0.0)
        if turning_s > last_s or "link_s" not in move or move["link_s"] < last_s:
            continue
        looked_at += 1
        rests = np.array(
            [[(new[key] - max(blow["to_s"] for blow in new["hit"].values())) / (move[key] - last_s)
              for key in ("link_s", "label_end_s", "end_s")] for new in drawn]
        )  # fmt: skip
        assert np.allclose(rests, rests[:, :1], atol=1e-3), name
        assert 0.8 - 1e-3 <= rests.min() < 0.82, name
        assert 1.18 < rests.max() <= 1.2 + 1e-3, name
    assert looked_at


def test_openings_are_longer_or_shorter(draws):
    for name in ("stagger", "parried"):
        ends = np.array([draw["move"][name]["end_s"] for draw in draws[1:]]) / draws[0]["move"][name]["end_s"]
        assert 0.8 - 1e-3 <= ends.min() < 0.82
        assert 1.18 < ends.max() <= 1.2 + 1e-3


def test_a_measured_time_holds_a_blow_back(data):
    """The blow of a move whose end is measured does not go past it, and turning is not cut short."""
    move = data.get(IUDEX, "move.punch")
    move |= {"link_s": 0.86, "source": {"*": "guess", "link_s": "measured"}}
    move["track"] = {"aim": move["track"]["aim"] | {"to_s": move["end_s"]}}
    move["hit"] = {"fist": move["hit"]["fist"] | {"from_s": 0.76, "to_s": 0.85, "source": "guess"}}
    data.set(IUDEX, "move.punch", move)
    latest = 0.0
    for seed in range(100):
        drawn = overlay(move, draw_variant("iudex", seed, data=data.root)["move"]["punch"])
        assert drawn["link_s"] == 0.86
        assert drawn["hit"]["fist"]["to_s"] <= 0.86
        assert drawn["end_s"] >= move["end_s"]
        latest = max(latest, drawn["hit"]["fist"]["to_s"])
    assert latest == 0.86


def test_a_measured_follow_up_keeps_the_label_after_it(data):
    """A blow at the start and a follow-up at the end: what is drawn must not end before the follow-up begins."""
    move = data.get(IUDEX, "move.punch")
    times = {"link_s": 2.0, "label_end_s": 2.02, "end_s": 2.05, "source": {"*": "guess", "link_s": "measured"}}
    data.set(IUDEX, "move.punch", move | times)
    for seed in range(40):
        drawn = drawn_spec("iudex", seed, MAX_STRENGTH, data.root).boss
        punch = drawn.moves[drawn.move_index("punch")]
        assert punch.link_s == 2.0 <= punch.label_end_s <= punch.end_s


def test_a_measured_end_holds_the_drawn_times_before_it(data):
    move = data.get(IUDEX, "move.punch")
    times = {"link_s": 2.0, "label_end_s": 2.02, "end_s": 2.05, "source": {"*": "guess", "end_s": "measured"}}
    data.set(IUDEX, "move.punch", move | times)
    for seed in range(40):
        drawn = drawn_spec("iudex", seed, MAX_STRENGTH, data.root).boss
        punch = drawn.moves[drawn.move_index("punch")]
        assert punch.link_s <= punch.label_end_s <= punch.end_s == 2.05


def test_weights_are_drawn_evenly_by_their_logarithm(guessed, draws):
    """From half to double, each on its own."""
    columns = []
    for number, phase in draws[0]["phase"].items():
        for row, rule in enumerate(phase["rule"]):
            for act, weight in rule["weights"].items():
                drawn = [draw["phase"][number]["rule"][row]["weights"][act] for draw in draws[1:]]
                columns.append(np.log2(np.array(drawn) / weight))
        for name, act in phase["act"].items():
            for row, chain in enumerate(act.get("chains", ())):
                drawn = [draw["phase"][number]["act"][name]["chains"][row]["weight"] for draw in draws[1:]]
                columns.append(np.log2(np.array(drawn) / chain["weight"]))
    units = np.array(columns)
    assert len(units) > 40
    assert abs(units).max() <= 1.0 + 1e-4
    assert (units.min(axis=1) < -0.9).all()
    assert (units.max(axis=1) > 0.9).all()
    assert (abs(units.mean(axis=1)) < 0.2).all()
    between = np.corrcoef(units)[~np.eye(len(units), dtype=bool)]
    assert abs(between).max() < 0.4
    assert between.std() < 0.09


def test_distances_of_follow_ups_are_drawn(draws):
    for draw in draws[1:]:
        for number, phase in draws[0]["phase"].items():
            for name, act in phase["act"].items():
                for row, chain in enumerate(act.get("chains", ())):
                    links = draw["phase"][number]["act"][name]["chains"][row]["links"]
                    assert [link["move"] for link in links] == [link["move"] for link in chain["links"]]
                    for new, old in zip(links, chain["links"], strict=True):
                        assert new["within_m"] != old["within_m"]
                        assert abs(new["within_m"] / old["within_m"] - 1.0) <= 0.2 + 1e-4


def test_rows_of_rules_that_are_public_stay_beside_drawn_ones(data):
    rules = data.get(IUDEX, "phase.1.rule")
    for row, rule in enumerate(rules):
        data.set(IUDEX, f"phase.1.rule.{row}", rule | {"source": "guess" if row == 5 else "public"})
    drawn = draw_variant("iudex", 1, data=data.root)["phase"]["1"]["rule"]
    assert [
        row for row, (new, old) in enumerate(zip(drawn, rules, strict=True)) if new["weights"] != old["weights"]
    ] == [5]


# ---------------------------------------------------------------- bounds of the file


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("reach", 0.5, "must be at most 0.45"),
        ("tracking", -0.1, "must be at least 0"),
        ("weight", 0.5, "must be at least 1"),
        ("hit_shift_s", 2.0, "must be at most 1"),
        ("reech", 0.1, "is not a known key, did you mean 'reach'?"),
    ],
)
def test_bounds_out_of_range_are_refused(data, key, value, reason):
    data.set(IUDEX, f"draw.{key}", value)
    data.refuses(f"draw.{key}", value, reason)


def test_bounds_need_a_source(data):
    data.remove(IUDEX, "draw.source")
    assert "has no source" in data.refusal().reason


def test_a_boss_without_bounds_loads_but_cannot_be_drawn(data):
    data.remove(IUDEX, "draw")
    assert data.load().boss.draw is None
    with pytest.raises(DataError, match=r"iudex\.toml: draw = None: is missing; a drawn variant needs the bounds"):
        draw_variant("iudex", 1, data=data.root)


@pytest.mark.parametrize("strength", [-0.1, 2.1, float("nan")])
def test_strength_out_of_range_is_refused(strength):
    with pytest.raises(MisuseError, match=rf"strength {strength} is out of range; give 0\.0 to 2\.0"):
        draw_variant("iudex", 1, strength)


def test_a_negative_seed_is_refused():
    with pytest.raises(MisuseError, match="seed -1 is out of range; give a whole number from 0"):
        draw_variant("iudex", -1)


# ---------------------------------------------------------------- files


def test_a_written_file_is_the_drawn_spec(tmp_path):
    for seed, strength in ((7, 1.0), (2**64 - 1, 0.3), (0, 0.0)):
        file = write_overlay(tmp_path / f"{seed}.toml", "iudex", seed, strength)
        loaded, drawn = load_fight("iudex", str(file)), drawn_spec("iudex", seed, strength)
        assert loaded == drawn
        assert pack(loaded).tobytes() == pack(drawn).tobytes()


def test_the_head_says_what_the_file_is(tmp_path):
    file = write_overlay(tmp_path / "mine.toml", "iudex", 7, 0.5)
    head = file.read_text(encoding="utf-8").split("\n\n")[0]
    assert head.splitlines()[0] == '# A drawn variant of "iudex": seed 7, strength 0.5.'
    assert 'variant="mine.toml"' in head


def test_a_boss_with_a_strange_name_is_written(tmp_path):
    boss = tmp_path / "line\nbreak.toml"
    boss.write_bytes((DATA / IN_DATA).read_bytes())
    file = write_overlay(tmp_path / "mine.toml", str(boss), 7)
    assert load_fight("iudex", str(file)) == drawn_spec("iudex", 7)


def test_a_file_that_is_there_is_not_touched(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("precious", encoding="utf-8")
    with pytest.raises(MisuseError, match=r"mine\.toml is there already; give another name or delete it"):
        write_overlay(file, "iudex", 7)
    assert file.read_text(encoding="utf-8") == "precious"
    assert os.listdir(tmp_path) == ["mine.toml"]


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(MisuseError, match=r"mine\.toml cannot be written"):
        write_new(tmp_path / "mine.toml", "\ud800")  # which no file can hold
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [("gone/mine.toml", "No such file or directory"), ("file/mine.toml", "Not a directory"), ("null\0.toml", "null")],
)
def test_a_place_that_cannot_be_written_is_named(tmp_path, name, reason):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(MisuseError, match=f"cannot be written: .*{reason}.*; give another place"):
        write_overlay(tmp_path / name, "iudex", 7)
    assert os.listdir(tmp_path) == ["file"]


def test_a_name_that_no_variant_can_have_is_refused(tmp_path):
    with pytest.raises(MisuseError, match=r"mine does not end in \.toml"):
        write_overlay(tmp_path / "mine", "iudex", 7)
    with pytest.raises(DataError, match="cannot be found"):
        write_overlay("~nobody-of-this-name/mine.toml", "iudex", 7)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(MisuseError, match="cannot be written: No space left on device"):
        write_overlay(tmp_path / "mine.toml", "iudex", 7)
    assert os.listdir(tmp_path) == []


def test_of_two_writers_at_once_one_wins(tmp_path):
    results = []

    def write(seed):
        try:
            write_overlay(tmp_path / "mine.toml", "iudex", seed)
            results.append(seed)
        except MisuseError:
            results.append(None)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [winner] = [seed for seed in results if seed is not None]
    assert os.listdir(tmp_path) == ["mine.toml"]
    assert load_fight("iudex", str(tmp_path / "mine.toml")) == drawn_spec("iudex", winner)
