"""Which files the fights are dealt out among, and how drawn ones make way for new ones."""

import numpy as np
import pytest

from soulsgym.errors import DataError, MisuseError
from soulsgym.spec import load_fight
from soulsgym.spec.draw import drawn_spec
from soulsgym.spec.population import (
    Population,
    drawn_count,
    evaluation_seed,
    evaluation_specs,
    training_seed,
)


class Blocks:
    """Takes replacements, unless a block is busy."""

    def __init__(self, *busy):
        self.busy, self.taken = set(busy), []

    def replace(self, block, spec):
        if block in self.busy:
            return False
        self.taken.append((block, spec))
        return True

    @property
    def blocks(self):
        return [block for block, _ in self.taken]


def ended(population, *which):
    flags = np.zeros(len(population.entry_of_fight), np.bool_)
    flags[list(which)] = True
    return flags


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(("variant", "number"), [("drawn:1", 1), ("drawn:32", 32), ("drawn:1000", 1000)])
def test_a_number_of_drawn_files(variant, number):
    assert drawn_count(variant) == number


@pytest.mark.parametrize("variant", ["standard", "hard", "drawn", "my/drawn:3", "Drawn:3", ""])
def test_no_number_of_drawn_files(variant):
    assert drawn_count(variant) is None


@pytest.mark.parametrize("variant", ["drawn:", "drawn:0", "drawn:-1", "drawn:1.5", "drawn:x", "drawn:1001", "drawn:²"])
def test_a_bad_number_of_drawn_files_is_refused(variant):
    with pytest.raises(
        MisuseError, match=f"variant '{variant}' is not a number of drawn files; give drawn:1 to drawn:1000"
    ):
        drawn_count(variant)


# ---------------------------------------------------------------- shares


def test_fights_are_dealt_out_among_the_entries_then_among_drawn_files(tmp_path, spec):
    """Eleven fights: 4 + 4 + 3 by entry, the last 2 + 1 by file."""
    path = tmp_path / "mine.toml"
    path.write_text("[body]\nhp = 900\n", encoding="utf-8")
    population = Population("iudex", ["hard", str(path), "drawn:2"], 11)
    assert population.entries == ("hard", str(path), "drawn:2")
    assert population.counts == (4, 4, 2, 1)
    assert population.entry_of_fight.tolist() == [0] * 4 + [1] * 4 + [2] * 3
    assert population.specs == (
        load_fight("iudex", "hard"), load_fight("iudex", str(path)), spec, spec,
    )  # fmt: skip


def test_fewer_fights_than_drawn_files_have_one_each():
    assert Population("iudex", ["standard", "drawn:32"], 5).counts == (3, 1, 1)


def test_an_entry_may_stand_there_twice():
    population = Population("iudex", ["drawn:2", "standard", "drawn:1"], 6)
    assert population.counts == (1, 1, 2, 2)
    population.reset(0, Blocks().replace)
    assert len(set(population.seeds.tolist())) == 4, "0 for the named one, three drawn"


@pytest.mark.parametrize(
    ("variants", "settings", "message"),
    [
        ([], {}, "variants are empty"),
        (["standard", "hard", "drawn:2"], {"n": 2}, "2 fights are too few for 3 variants"),
        (["standard", "hrad"], {}, r"variant 'hrad' of iudex is not known, did you mean 'hard'\?"),
        (["drawn:0"], {}, "'drawn:0' is not a number of drawn files"),
        (["drawn:2"], {"strength": 3.0}, r"strength 3\.0 is out of range"),
        (["standard"], {"renew_after": -1.0}, r"renew_after -1\.0 is out of range; give 0 or more"),
        (["standard"], {"renew_after": float("nan")}, "renew_after nan is out of range"),
    ],
)
def test_impossible_populations_are_refused(variants, settings, message):
    with pytest.raises(MisuseError, match=message):
        Population("iudex", variants, **({"n": 8} | settings))


def test_a_boss_that_cannot_be_drawn_is_refused_at_once(data):
    data.remove("bosses/iudex.toml", "draw")
    Population("iudex", ["standard"], 2, data=data.root)
    with pytest.raises(DataError, match="draw = None: is missing"):
        Population("iudex", ["standard", "drawn:2"], 2, data=data.root)


# ---------------------------------------------------------------- seeds


def test_training_and_evaluation_draw_apart():
    training = {training_seed(run, counter) for run in range(30) for counter in range(300)}
    evaluation = {evaluation_seed(index) for index in range(1000)}
    assert len(training) == 9000
    assert len(evaluation) == 1000
    assert not training & evaluation


def test_seeds_of_evaluations_stay_what_they_are():
    """Win rates of one year are compared with those of another."""
    assert evaluation_seed(0) == np.random.SeedSequence([0x65766472, 0]).generate_state(1, np.uint64)[0]


def test_files_of_an_evaluation():
    assert evaluation_specs("iudex", "hard") == (load_fight("iudex", "hard"),)
    drawn = evaluation_specs("iudex", "drawn:2", strength=0.5)
    assert drawn == tuple(drawn_spec("iudex", evaluation_seed(index), 0.5) for index in range(2))


def test_a_reset_draws_by_its_seed():
    population, engine = Population("iudex", ["standard", "drawn:2"], 4, strength=0.5), Blocks()
    population.reset(7, engine.replace)
    seeds = [training_seed(7, counter) for counter in range(2)]
    assert engine.blocks == [1, 2]
    assert [spec for _, spec in engine.taken] == [drawn_spec("iudex", seed, 0.5) for seed in seeds]
    assert population.seeds.tolist() == [0, *seeds]
    assert population.specs[1:] == tuple(spec for _, spec in engine.taken)
    assert population.draws == 2
    population.reset(7, engine.replace)
    assert population.seeds.tolist() == [0, *seeds]


def test_seeds_of_any_size_draw():
    population = Population("iudex", ["drawn:1"], 1)
    for seed in (0, 2**64 - 1, 2**80 + 5):
        population.reset(seed, Blocks().replace)
        assert population.seeds.tolist() == [training_seed(seed % 2**64, 0)]


# ---------------------------------------------------------------- renewal


def test_drawn_files_are_renewed_in_turn():
    """Four fights on two drawn files, renewed after 1.5 fights in each of two: after three that ended."""
    population, engine = Population("iudex", ["standard", "drawn:2"], 8, renew_after=1.5), Blocks()
    assert population.counts == (4, 2, 2)
    population.reset(7, engine.replace)
    engine.taken.clear()
    population.report(ended(population, 0, 1, 2, 3), engine.replace)
    population.report(ended(population, 3, 4, 5), engine.replace)
    assert engine.taken == [], "two of the drawn ones, and five of the standard one"
    population.report(ended(population, 4), engine.replace)
    assert engine.blocks == [1]
    population.report(ended(population, 4, 5, 6, 7), engine.replace)
    assert engine.blocks == [1, 2]
    population.report(ended(population, 5, 6), engine.replace)
    population.report(ended(population, 5), engine.replace)
    assert engine.blocks == [1, 2, 1]
    assert population.seeds.tolist() == [0, training_seed(7, 4), training_seed(7, 3)]
    assert population.draws == 5
    assert population.specs[1] == engine.taken[2][1]


def test_a_busy_block_is_tried_again():
    population, engine = Population("iudex", ["drawn:2"], 2, renew_after=1.0), Blocks()
    population.reset(7, engine.replace)
    seeds = population.seeds.tolist()
    engine.taken.clear()
    engine.busy = {0}
    for _ in range(3):
        population.report(ended(population, 1), engine.replace)
    assert engine.taken == []
    assert (population.seeds.tolist(), population.draws) == (seeds, 2)
    engine.busy = set()
    population.report(ended(population, 1), engine.replace)
    assert engine.blocks == [0]
    assert population.seeds.tolist() == [training_seed(7, 2), seeds[1]]


def test_without_renewal_files_stay():
    population, engine = Population("iudex", ["drawn:2"], 2, renew_after=0.0), Blocks()
    population.reset(7, engine.replace)
    for _ in range(50):
        population.report(ended(population, 0, 1), engine.replace)
    assert engine.blocks == [0, 1]


def test_named_files_are_never_replaced():
    population, engine = Population("iudex", ["standard", "hard"], 4, renew_after=0.1), Blocks()
    population.reset(7, engine.replace)
    for _ in range(50):
        population.report(ended(population, 0, 1, 2, 3), engine.replace)
    assert engine.taken == []


# ---------------------------------------------------------------- state


def test_a_restored_population_draws_on():
    population, engine = Population("iudex", ["standard", "drawn:2"], 8, renew_after=1.0), Blocks()
    population.reset(2**64 - 3, engine.replace)
    for _ in range(3):
        population.report(ended(population, 4, 5, 6), engine.replace)
    state = population.state()
    assert all(isinstance(array, np.ndarray) for array in state.values())
    other, its = Population("iudex", ["standard", "drawn:2"], 8, renew_after=1.0), Blocks()
    other.restore(state)
    assert other.specs == population.specs
    assert other.tables == population.tables
    engine.taken.clear()
    for _ in range(5):
        for each, blocks in ((population, engine), (other, its)):
            each.report(ended(each, 4, 5), blocks.replace)
    assert engine.taken == its.taken != []
    assert {key: array.tolist() for key, array in other.state().items()} == {
        key: array.tolist() for key, array in population.state().items()
    }


def test_both_files_of_a_block_are_kept():
    """The one before is still played by fights that run."""
    population, engine = Population("iudex", ["drawn:1"], 1, renew_after=1.0), Blocks()
    population.reset(7, engine.replace)
    population.report(ended(population, 0), engine.replace)
    before, now = (drawn_spec("iudex", training_seed(7, counter)) for counter in range(2))
    assert sorted(population.tables, key=lambda spec: spec == now) == [before, now]


def test_a_state_is_a_copy():
    population = Population("iudex", ["drawn:1"], 1)
    state = population.state()
    population.reset(7, Blocks().replace)
    assert state["seeds"].tolist() == [0, 0]
