"""One encoder for several bosses: the same rows for all of them, and what is another boss's is 0."""

import gymnasium
import numpy as np
import pytest

import soulsgym  # noqa: F401 (registers the ids)
from soulsgym.engine import standard_starts
from soulsgym.errors import MisuseError
from soulsgym.parts.encoders import NO_ACTION, make_encoder
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight

BOSSES = ("iudex", "vordt", "margit")
N = 3
EVERYONE = np.ones(N, np.bool_)


@pytest.fixture(scope="module")
def fights():
    """The beginnings of fights by boss."""
    found = {}
    for boss in BOSSES:
        engine = SimEngine(load_fight(boss), N)
        engine.reset(EVERYONE, standard_starts(N), np.arange(N, dtype=np.uint64))
        found[boss] = engine.fights
    return found


def row_of(encoder, fights, mask=EVERYONE):
    out = np.full((N, encoder.size), 7.0, np.float32)
    encoder.begin(fights, EVERYONE)
    encoder.encode(fights, np.full(N, NO_ACTION), mask, out)
    return out


@pytest.mark.parametrize("name", ["player", "soulsai74"])
def test_every_boss_has_the_same_numbers(name):
    encoders = [make_encoder(name, N, load_fight(boss), bosses=BOSSES) for boss in BOSSES]
    assert encoders[0].names == encoders[1].names == encoders[2].names
    assert len(set(encoders[0].names)) == encoders[0].size
    assert encoders[0].names[:3] == ("against_iudex", "against_vordt", "against_margit")
    assert all((one.low == encoders[0].low).all() and (one.high == encoders[0].high).all() for one in encoders)


@pytest.mark.parametrize("boss", BOSSES)
def test_a_row_holds_what_the_boss_alone_would_show_and_who_he_is(boss, fights):
    spec = load_fight(boss)
    alone, among = make_encoder("player", N, spec), make_encoder("player", N, spec, bosses=BOSSES)
    plain = dict(zip(alone.names, row_of(alone, fights[boss])[0], strict=True))
    row = row_of(among, fights[boss])
    seen = dict(zip(among.names, row[0], strict=True))
    assert {name: seen[f"against_{name}"] for name in BOSSES} == {name: name == boss for name in BOSSES}
    for name, value in plain.items():
        own = f"{boss}_{name}" if name.startswith(("boss_is_", "boss_was_")) else name
        assert seen.pop(own) == value
    assert not any(value for name, value in seen.items() if not name.startswith("against_"))
    assert (among.low <= row).all()
    assert (row <= among.high).all()


def test_attacks_of_one_label_are_not_mixed_up():
    names = make_encoder("player", 1, load_fight("vordt"), bosses=BOSSES).names
    assert [name for name in names if name.endswith("is_Attack3000")] == [
        "iudex_boss_is_Attack3000", "vordt_boss_is_Attack3000", "margit_boss_is_Attack3000",
    ]  # fmt: skip


def test_rows_outside_of_the_mask_stay(fights):
    encoder = make_encoder("player", N, load_fight("vordt"), bosses=BOSSES)
    out = row_of(encoder, fights["vordt"], np.array([True, False, True]))
    assert (out[1] == 7.0).all()
    assert not (out[[0, 2]] == 7.0).any()


def test_it_remembers_what_the_encoder_inside_does(fights):
    encoder = make_encoder("player", N, load_fight("margit"), bosses=BOSSES, history=2)
    row_of(encoder, fights["margit"])
    other = make_encoder("player", N, load_fight("margit"), bosses=BOSSES, history=2)
    other.restore(encoder.state())
    out = [np.zeros((N, encoder.size), np.float32) for _ in range(2)]
    for one, rows in zip((encoder, other), out, strict=True):
        one.encode(fights["margit"], np.full(N, 3), EVERYONE, rows)
    assert (out[0] == out[1]).all()


def test_a_boss_who_is_not_among_them_and_bad_lists():
    with pytest.raises(MisuseError, match="boss 'margit' is not among those of the encoder"):
        make_encoder("player", 1, load_fight("margit"), bosses=("iudex", "vordt"))
    with pytest.raises(MisuseError, match="bosses 'iudex' is a text; give a list of names"):
        make_encoder({"name": "player", "bosses": "iudex"}, 1, load_fight("iudex"))
    with pytest.raises(MisuseError, match="boss 'vrodt' is not known, did you mean 'vordt'"):
        make_encoder("player", 1, load_fight("iudex"), bosses=("iudex", "vrodt"))


def test_environments_of_several_bosses_show_the_same_space():
    encoder = {"name": "player", "bosses": BOSSES}
    made = [gymnasium.make(f"SoulsGym{name}SimEncoded-v0", encoder=encoder) for name in ("Vordt", "Margit")]
    assert made[0].observation_space == made[1].observation_space
    assert [env.reset(seed=1)[0][:3].tolist() for env in made] == [[0, 1, 0], [0, 0, 1]]
