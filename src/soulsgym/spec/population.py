"""Which files the fights of one engine are played on: named ones, and drawn ones that make way for new ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError
from soulsgym.spec.draw import draw_spec
from soulsgym.spec.fight import DATA, DRAWN, STANDARD, FightSpec, load_variant, name_or_path, read_files

TRAINING_DRAWS, EVALUATION_DRAWS = 0x7472_6472, 0x6576_6472
"""Streams of seeds: what is evaluated on was never trained on."""
MOST_DRAWN = 1000
SEEDS = 1 << 64


def drawn_count(variant: str) -> int | None:
    """How many drawn files a variant such as "drawn:32" stands for; None for any other."""
    variant = name_or_path("variant", variant)
    if not variant.startswith(DRAWN):
        return None
    number = variant.removeprefix(DRAWN)
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= MOST_DRAWN):
        raise MisuseError(f"variant {variant!r} is not a number of drawn files; give drawn:1 to drawn:{MOST_DRAWN}")
    return int(number)


def training_seed(run_seed: int, counter: int) -> int:
    """The seed of a file that is drawn in training."""
    return _seed(TRAINING_DRAWS, run_seed, counter)


def evaluation_seed(index: int) -> int:
    """The seed of a file that is drawn for evaluations, the same ones for every run."""
    return _seed(EVALUATION_DRAWS, index)


def _seed(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def evaluation_specs(boss: str, variant: str, strength: float = 1.0, data: Path = DATA) -> tuple[FightSpec, ...]:
    """The one file of a name or a path, or the drawn files that "drawn:N" stands for in evaluations."""
    files, number = read_files(boss, data), drawn_count(variant)
    if number is None:
        return (load_variant(files, variant),)
    return tuple(draw_spec(files, evaluation_seed(index), strength) for index in range(number))


class Population:
    """The files that `n` fights are played on, one for each block of neighbours.

    The fights are dealt out evenly among the entries of `variants`, the share of "drawn:N" evenly among N drawn files,
    or as many as there are fights in it. The drawn files are replaced by new ones in turn, each after it was fought
    about `renew_after` times in every fight of its block; 0 keeps them.
    """

    def __init__(
        self,
        boss: str,
        variants: Sequence[str],
        n: int,
        *,
        strength: float = 1.0,
        renew_after: float = 16.0,
        data: Path = DATA,
    ) -> None:
        if not variants:
            raise MisuseError("variants are empty; give at least one, such as 'standard'")
        if n < len(variants):
            raise MisuseError(f"{n} fights are too few for {len(variants)} variants; give as many fights or more")
        if not renew_after >= 0.0:
            raise MisuseError(f"renew_after {renew_after} is out of range; give 0 or more")
        self.entries, self._strength = tuple(variants), strength
        self._files = read_files(boss, data)
        self._named: list[FightSpec | None] = []
        counts: list[int] = []
        entries: list[int] = []
        for entry, (variant, share) in enumerate(zip(variants, _dealt(n, len(variants)), strict=True)):
            number = drawn_count(variant)
            spec = load_variant(self._files, variant) if number is None else None
            own = _dealt(share, min(number or 1, share))
            counts += own
            entries += [entry] * len(own)
            self._named += [spec] * len(own)
        self.counts = tuple(counts)
        self.entry_of_fight: npt.NDArray[np.int64] = np.repeat(np.array(entries), counts)
        is_drawn = np.array([spec is None for spec in self._named])
        self._drawn_blocks = np.flatnonzero(is_drawn).tolist()
        self._is_drawn_fight = np.repeat(is_drawn, counts)
        if self._drawn_blocks:
            draw_spec(self._files, 0, strength)  # a bad strength, or a boss without bounds, is refused here
        fights_of_a_file = self._is_drawn_fight.sum() / max(1, len(self._drawn_blocks))
        self._renew_every = max(1, round(renew_after * fights_of_a_file)) if renew_after else 0
        self._pending: tuple[int, FightSpec] | None = None
        # What state() keeps. A block has two tables in the engine; seeds of drawn files are kept by table, 0 for none.
        self._seeds = np.zeros(2 * len(counts), np.uint64)
        self._tables = 2 * np.arange(len(counts))
        self._run_seed, self._draws, self._finished, self._turn = 0, 0, 0, 0

    @property
    def specs(self) -> tuple[FightSpec, ...]:
        """What new fights of each block begin on, drawn at each call; drawn blocks are standard until a reset."""
        return tuple(self._spec_of(table) for table in self._tables.tolist())

    @property
    def tables(self) -> tuple[FightSpec | None, ...]:
        """The files by the engine's tables, of which each block has two."""
        used = self._seeds.astype(np.bool_)
        used[self._tables] = True
        return tuple(self._spec_of(table) if used[table] else None for table in range(len(used)))

    @property
    def seeds(self) -> npt.NDArray[np.uint64]:
        """The seeds that the files of the blocks were drawn from, 0 for those that were not."""
        return self._seeds[self._tables]

    @property
    def draws(self) -> int:
        """Files drawn since the last reset."""
        return self._draws

    def reset(self, seed: int, replace: Callable[[int, FightSpec], bool]) -> None:
        """Draw the first files of a run and `replace` those of the drawn blocks by them."""
        self._run_seed, self._draws, self._finished, self._turn = seed % SEEDS, 0, 0, 0
        for block in self._drawn_blocks:
            self._replace(block, replace)

    def report(self, ended: npt.NDArray[np.bool_], replace: Callable[[int, FightSpec], bool]) -> None:
        """Count fights that ended, and when there were enough `replace` a drawn file by a new one."""
        if not self._renew_every:
            return
        self._finished += int((ended & self._is_drawn_fight).sum())
        if self._finished >= self._renew_every and self._drawn_blocks:
            block = self._drawn_blocks[self._turn % len(self._drawn_blocks)]
            if self._replace(block, replace):
                self._finished = 0
                self._turn += 1

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that decides which files come next; files by their seeds."""
        counters = np.array([self._draws, self._finished, self._turn, self._run_seed], np.uint64)
        return {"seeds": self._seeds.copy(), "tables": self._tables.copy(), "counters": counters}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to a state of a population of the same variants and number of fights."""
        if any(state[key].shape != mine.shape for key, mine in self.state().items()):
            raise MisuseError(
                "the saved fights are of other variants; use the variants and the number they were saved with"
            )
        self._seeds[:], self._tables[:] = state["seeds"], state["tables"]
        self._draws, self._finished, self._turn, self._run_seed = (int(number) for number in state["counters"])

    def _spec_of(self, table: int) -> FightSpec:
        named, seed = self._named[table // 2], int(self._seeds[table])
        if named is None and seed:
            return draw_spec(self._files, seed, self._strength)
        return named or load_variant(self._files, STANDARD)

    def _replace(self, block: int, replace: Callable[[int, FightSpec], bool]) -> bool:
        seed = training_seed(self._run_seed, self._draws)
        if self._pending is None or self._pending[0] != seed:  # kept, since a block may have to be tried again
            self._pending = seed, draw_spec(self._files, seed, self._strength)
        if not replace(block, self._pending[1]):
            return False
        self._tables[block] ^= 1
        self._seeds[self._tables[block]] = seed
        self._draws += 1
        return True


def _dealt(n: int, among: int) -> list[int]:
    share, rest = divmod(n, among)
    return [share + (index < rest) for index in range(among)]
