"""`souls zoo`, `verify`, `push` and `pull`: agents that others have trained, and yours for others."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from soulsai.cli.options import AsJson, bar, choose_trained, print_json, run_argument
from soulsai.cli.tables import make_table
from soulsai.runs.summary import ROOT, ZOO, open_trained, zoo_names
from soulsai.sharing.agent import AgentNotes, Measurement, fight_digest, read_notes, shared_config
from soulsai.sharing.verify import Verdict
from soulsai.sharing.verify import verify as verify_claims

FAILED = 1
HEADS = ("standard", "hard", "randomize 1.0")
"""What the agents of the package are measured in."""
Fights = Annotated[int | None, typer.Option(min=1, help="Play only the first N fights of each claim.", metavar="N")]


def zoo(as_json: AsJson = False) -> None:
    """List the agents that come with the package, with their win rates and the commands that trained them.

    Use them wherever a run is expected: souls watch zoo:iudex, souls eval zoo:iudex

    Example: souls zoo
    """
    agents = {name: open_trained(ZOO + name) for name in zoo_names()}
    notes = {name: read_notes(run) for name, run in agents.items()}
    fits = {name: _fits(notes[name], ZOO + name) for name in agents}
    if as_json:
        print_json({"agents": [{"name": ZOO + name, "boss_is_same": fits[name], **msgspec.to_builtins(each)}
                               for name, each in notes.items()]})  # fmt: skip
        return
    rows = [[ZOO + name, *map(_rate, each.measured)] for name, each in notes.items()]
    console = Console(highlight=False)
    console.print(make_table(("agent", *HEADS), rows, "wins of 1,000 fights, with the 95 % interval"))
    for name, each in notes.items():
        digests = ", ".join(f"{variant} {digest}" for variant, digest in each.data.items())
        console.print(f"{ZOO}{name}: {each.command}\n  boss {digests}; code {each.code}", soft_wrap=True)
        if not fits[name]:
            console.print(
                f"  the boss file has changed since; update the agent with tools/renew_zoo.py {name}", soft_wrap=True
            )


def verify(
    folder: Annotated[str, run_argument("Folder of a shared agent, as souls pull makes it, or zoo:NAME.", "FOLDER")],
    fights: Fights = None,
    as_json: AsJson = False,
) -> None:
    """Replay the claimed wins of a shared agent from the same seeds, and check whether they hold.

    An agent whose weights, config or boss file have changed since it was measured is refused. Exit code 1: a claim
    does not hold.

    Example: souls verify runs/iudex
    """
    with bar(f"replaying {folder}") as progress:
        verdicts = list(verify_claims(open_trained(folder), fights, progress))
    if as_json:
        print_json({"holds": all(each.holds for each in verdicts), "claims": [_object(each) for each in verdicts]})
    else:
        for each in verdicts:
            typer.echo(_sentence(each))
    if not all(each.holds for each in verdicts):
        raise typer.Exit(FAILED)


def push(
    run: Annotated[str, run_argument("Folder or name of a run.")],
    repo: Annotated[str, run_argument("Repository on the Hugging Face Hub: USER/NAME.", "USER/NAME")],
    fights: Annotated[int, typer.Option(min=1, max=100_000, help="Fights for each win rate of the card.")] = 1000,
    private: Annotated[bool, typer.Option("--private", help="Only you can see it.")] = False,
    keep: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep the uploaded files in a new folder.")
    ] = None,
) -> None:
    """Share the policy of a run on the Hugging Face Hub, with its config, win rates, report, a fight and a model card.

    The policy is measured first. Your own Python files are not shared.

    Example: souls push runs/mine alice/iudex
    """
    from soulsai.sharing.hub import push as upload

    opened = open_trained(choose_trained(run))
    with tempfile.TemporaryDirectory(prefix="souls-") as made, bar(f"{run} plays") as progress:
        url = upload(opened, repo, keep or Path(made) / "agent", fights=fights, private=private, progress=progress)
    typer.echo(f"pushed {opened.name} to {url}; others get it with: souls pull {repo}")


def pull(
    repo: Annotated[str, run_argument("Repository on the Hugging Face Hub: USER/NAME.", "USER/NAME")],
    run: Annotated[Path | None, typer.Option(help="New folder; one under runs/ if not given.")] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit; the newest if not given.")] = None,
) -> None:
    """Download a shared agent as a new run; no code in it is executed.

    Example: souls pull alice/iudex
    """
    from soulsai.sharing.hub import check_repo
    from soulsai.sharing.hub import pull as fetch

    folder = run or ROOT / check_repo(repo).partition("/")[2]
    got = fetch(repo, folder, revision)
    plain = read_notes(got).measured[0]
    typer.echo(f"{folder}: claims {plain.rate:.1%} of {plain.fights:,} fights; check it: souls verify {folder}")
    typer.echo(f"next: souls watch {folder}, souls eval {folder}")


def _fits(notes: AgentNotes, text: str) -> bool:
    config = shared_config(open_trained(text))
    return all(fight_digest(config, variant) == digest for variant, digest in notes.data.items())


def _rate(each: Measurement) -> str:
    low, high = each.interval
    return f"{100 * each.rate:.1f} % ({100 * low:.1f}-{100 * high:.1f})"


def _sentence(verdict: Verdict) -> str:
    claim, found = verdict.claim, verdict.found
    again = f"{found.wins:,} of {found.fights:,} fights won, {_rate(found)}"
    if verdict.is_exact:
        return f"{claim.name}: holds exactly, {again}"
    word = "holds" if verdict.holds else "does not hold"
    return f"{claim.name}: {word}, claimed {100 * claim.rate:.1f} %, {again}"


def _object(verdict: Verdict) -> dict[str, Any]:
    about = {"holds": verdict.holds, "exact": verdict.is_exact}
    return about | {"claim": msgspec.to_builtins(verdict.claim), "found": msgspec.to_builtins(verdict.found)}
