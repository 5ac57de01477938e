"""Whether what is claimed of a shared agent holds: its files are those that were measured, and it wins as often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from soulsai.algorithms.algorithm import algorithm_of
from soulsai.errors import RunError
from soulsai.learning.loading import load_networks
from soulsai.runs.run import CONFIG, Run
from soulsai.sharing.agent import (
    AgentNotes,
    Measurement,
    Progress,
    checksums,
    fight_digest,
    measure,
    read_notes,
    shared_config,
)


@dataclass(frozen=True)
class Verdict:
    """A claim, and what the same fights gave this time."""

    claim: Measurement
    found: Measurement

    @property
    def is_exact(self) -> bool:
        """Whether as many of as many fights were won."""
        return self.claim == self.found

    @property
    def holds(self) -> bool:
        """Whether the claim is not above the interval of what was found.

        Another processor may round otherwise, so that a fight goes another way: wins need not be the same.
        """
        return self.claim.rate <= self.found.interval[1]


def verify(run: Run, fights: int | None = None, progress: Progress | None = None) -> Iterator[Verdict]:
    """Fight the fights of every claim again, the first `fights` of each; RunError if a file was changed."""
    notes = read_notes(run)
    refuse_changed(run, notes)
    config, networks = load_networks(run, config=shared_config(run))
    policy = algorithm_of(config).policy(networks)
    for claim in notes.measured:
        test = replace(claim, fights=min(fights or claim.fights, claim.fights), wins=0)
        yield Verdict(claim, measure(config, policy, test, progress=progress)[0])


def refuse_changed(run: Run, notes: AgentNotes) -> None:
    """RunError unless weights, config and boss files are those that the claims were measured with."""
    found = dict(checksums(run))
    for place in sorted({CONFIG, *found, *notes.files}):
        if place not in notes.files:
            raise RunError(f"{run.folder / place}: was not there when the agent was measured: pull it again")
        if place not in found:
            raise RunError(f"{run.folder / place}: is missing: pull the agent again")
        if found[place] != notes.files[place]:
            raise RunError(f"{run.folder / place}: was changed since the agent was measured: pull it again")
    config = shared_config(run)
    for claim in notes.measured:
        if fight_digest(config, claim.variant) != notes.data.get(claim.variant):
            raise RunError(
                f"{run.folder}: was measured on another {notes.boss} ({claim.variant}) than the one installed here "
                f"(soulsgym {notes.soulsgym}): use that version, or measure it again with souls eval"
            )
