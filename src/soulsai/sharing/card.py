"""The model card of a shared agent: what a reader of its page on the hub sees."""

from __future__ import annotations

from collections.abc import Iterator

from soulsai.config.schema import Config
from soulsai.runs.run import Run
from soulsai.sharing.agent import AgentNotes, Measurement
from soulsgym.packages import install_command
from soulsgym.spec import load_fight


def card_of(agent: Run, notes: AgentNotes, config: Config, repo: str) -> str:
    """Markdown with the header that the hub reads."""
    boss = load_fight(config.fight.boss, moves=False).boss.name
    folder = repo.partition("/")[2]
    return "\n".join(
        [
            *_header(notes, boss),
            f"# {boss}: {notes.measured[0].rate:.1%} of fights won",
            "",
            f"An agent that fights {boss} in the simulator of SoulsGym, trained by `{config.algorithm}` in SoulsAI for "
            f"{agent.status().step:,} steps.",
            "",
            "| fights | won | 95 % interval |",
            "|---|---|---|",
            *map(_row, notes.measured),
            "",
            "Greedy, on seeds that training never uses; time-outs count as losses. Winning in the simulator is not yet "
            "winning in the game.",
            "",
            "```sh",
            install_command("train", "hub"),
            f"souls pull {repo}",
            f"souls verify runs/{folder}    # plays the same fights again",
            f"souls watch runs/{folder}",
            "```",
            "",
            f"Trained with `{notes.command}`, soulsgym {notes.soulsgym}. Digest of the boss's numbers: "
            + ", ".join(f"{variant} `{digest}`" for variant, digest in notes.data.items())
            + f"; of the simulator's code: `{notes.code}`.",
            "",
        ]
    )  # fmt: skip


def _header(notes: AgentNotes, boss: str) -> Iterator[str]:
    plain = notes.measured[0]
    yield from ("---", "library_name: soulsai", "pipeline_tag: reinforcement-learning")
    yield from ("tags:", "- reinforcement-learning", "- dark-souls", "- soulsgym")
    yield from ("model-index:", "- name: agent", "  results:", "  - task:", "      type: reinforcement-learning")
    yield from ("    dataset:", f'      name: "{boss}"', "      type: soulsgym")
    yield from ("    metrics:", "    - type: win_rate", f"      value: {plain.rate:.4f}", "---", "")


def _row(each: Measurement) -> str:
    low, high = each.interval
    return f"| {each.fights:,}, {each.name} | {each.rate:.1%} | {low:.1%} to {high:.1%} |"
