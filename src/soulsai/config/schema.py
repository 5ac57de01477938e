"""Every key of a config, with its type, default, limits and meaning. Each object is given only its own section.

The sections here are those that all algorithms share; each algorithm has its own in `soulsai/algorithms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from msgspec import Meta, Struct, defstruct, field

from soulsai.config.algorithms import DEFAULT_ALGORITHM, algorithm_settings
from soulsgym.spec.fight import DRAWN as DRAWN
from soulsgym.spec.fight import STANDARD as STANDARD

if TYPE_CHECKING:
    AlgorithmName = str
else:
    AlgorithmName = Literal[tuple(algorithm_settings())]

T = TypeVar("T")
DEFAULT_BOSS = "iudex"
"""Whom to fight where neither a config nor an option nor a recording says."""


class RunConfig(Struct, frozen=True):
    """Length, checkpoints, evaluations and device."""

    seed: Annotated[int, Meta(ge=0, le=2**63 - 1, description="seed of all random numbers")] = 0
    steps: Annotated[int, Meta(ge=1, description="environment steps to train; one of a fight is 0.1 s")] = 20_000_000
    schedule_steps: Annotated[
        int, Meta(ge=0, description="steps until learning rate, entropy and beta are at their final values; 0: steps")
    ] = 0
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        Meta(description="where the network is trained; auto takes CUDA if there is one"),
    ] = "auto"
    threads: Annotated[int, Meta(ge=0, le=256, description="threads of network and simulator; 0: all cores")] = 0
    checkpoint_every_s: Annotated[float, Meta(ge=0.0, description="seconds between checkpoints")] = 30.0
    keep_checkpoints: Annotated[int, Meta(ge=2, le=1000, description="checkpoints kept; older ones are deleted")] = 2
    log_every_s: Annotated[float, Meta(ge=0.0, description="seconds between rows of metrics; 0: one per update")] = 1.0
    evaluate_every_steps: Annotated[int, Meta(ge=0, description="steps between greedy evaluations; 0: none")] = (
        1_000_000
    )
    evaluation_fights: Annotated[int, Meta(ge=1, le=100_000, description="fights or episodes of each evaluation")] = 200
    record_every_s: Annotated[
        float, Meta(ge=0.0, description="seconds between evaluations with fights recorded for the viewer; 0 never")
    ] = 20.0
    final_fights: Annotated[int, Meta(ge=0, description="fights or episodes of the last evaluation; 0: none")] = 1000
    stop_at: Annotated[
        float, Meta(description="end early when two evaluations in a row reach this win rate (or return); 0 never")
    ] = 0.0
    start_from: Annotated[str, Meta(description="run, or zoo:NAME, whose policy training begins with")] = ""
    accept: Annotated[tuple[str, ...], Meta(description="findings of the preflight that are intended, by name")] = ()

    def schedule_progress(self, step: int) -> float:
        """How far schedules are at a step, 0 to 1."""
        return min(1.0, step / (self.schedule_steps or self.steps))


class FightConfig(Struct, frozen=True):
    """The fight to train on; used with world = "fight"."""

    engine: Annotated[
        Literal["sim", "game"],
        Meta(description="what runs the fights: the simulator, or the running game, one fight at a time"),
    ] = "sim"
    boss: Annotated[str, Meta(description="whom to fight: a name, or the path of a boss file")] = DEFAULT_BOSS
    bosses: Annotated[
        tuple[str, ...],
        Meta(description="several bosses for one network, by name, with equally many fights; empty: only fight.boss"),
    ] = ()
    variants: Annotated[
        tuple[str, ...],
        Meta(
            description="the boss's files, with equally many fights: names, paths of overlay files, "
            "drawn:N for N random ones that training redraws"
        ),
    ] = ("standard",)
    draw_strength: Annotated[
        float,
        Meta(ge=0.0, le=2.0, description="how far drawn files are from the boss's own; 1: their whole uncertainty"),
    ] = 1.0
    phase: Annotated[int, Meta(ge=1, le=9, description="phase in which a standard fight begins")] = 1
    full: Annotated[
        bool,
        Meta(description="the boss moves on to the next phase; otherwise he stays in one phase for all his health"),
    ] = True
    randomize: Annotated[float, Meta(ge=0.0, le=1.0, description="strength of domain randomisation")] = 0.0
    number: Annotated[int, Meta(ge=1, le=65_536, description="fights in parallel")] = 512
    decisions: Annotated[bool, Meta(description="merge steps without a choice into the decision before them")] = True
    step_limit: Annotated[int, Meta(ge=1, description="steps after which a fight is cut off")] = 3000
    no_hit: Annotated[bool, Meta(description="the first hit taken ends the fight as lost")] = False
    ending: Annotated[
        str, Meta(description="what else ends a fight of training: standard for nothing, or one of fight.parts")
    ] = "standard"
    parts: Annotated[
        tuple[str, ...],
        Meta(
            description="your own Python files that register parts: reward terms, rewards, encoders, "
            "action sets, endings, starts"
        ),
    ] = ()

    @property
    def all_bosses(self) -> tuple[str, ...]:
        """Whom the agent is trained to fight."""
        return self.bosses or (self.boss,)

    @property
    def main_boss(self) -> str:
        """The one of them that is meant where one is: fight.boss, or the first."""
        return self.boss if self.boss in self.all_bosses else self.bosses[0]

    @property
    def main_variant(self) -> str:
        """The first of the variants that is one file, or the standard one: the agent is measured on it."""
        return next((variant for variant in self.variants if not variant.startswith(DRAWN)), STANDARD)


class EncoderConfig(Struct, frozen=True):
    """What the network sees of a fight."""

    name: Annotated[
        str,
        Meta(
            description="player: what a player sees, relative and normalised; soulsai74: as SoulsAI; "
            "or one of fight.parts"
        ),
    ] = "player"
    history: Annotated[int, Meta(ge=1, le=64, description="encodings stacked, the newest first")] = 1


class RewardConfig(Struct, frozen=True):
    """The reward."""

    preset: Annotated[str, Meta(description="terms and weights: duel, soulsgym, rl-souls, or one of fight.parts")] = (
        "duel"
    )
    weights: Annotated[dict[str, float], Meta(description="weights that replace those of the preset, by term")] = {}


class ActionsConfig(Struct, frozen=True):
    """The actions the agent may choose from."""

    preset: Annotated[
        str, Meta(description="all: 20; reduced: 16 with four rolls; no-parry: 19; or one of fight.parts")
    ] = "all"
    names: Annotated[tuple[str, ...], Meta(description="exactly these actions instead of the preset's, by name")] = ()
    masks: Annotated[bool, Meta(description="actions without effect are masked, in acting and in learning")] = True


class StartsConfig(Struct, frozen=True):
    """How training fights begin. Evaluations always begin with the standard start."""

    name: Annotated[
        str, Meta(description="standard: as the keys below say; or one of fight.parts, which ignores them")
    ] = "standard"
    random_pose: Annotated[bool, Meta(description="the player begins at one of the places around the arena")] = False
    mid_fight: Annotated[float, Meta(ge=0.0, le=1.0, description="share of fights that begin in the middle")] = 0.0
    boss_hp_share: Annotated[
        tuple[float, float], Meta(description="lowest and highest boss health of a mid-fight start")
    ] = (0.05, 1.0)
    player_hp_share: Annotated[
        tuple[float, float], Meta(description="lowest and highest player health of a mid-fight start")
    ] = (0.3, 1.0)
    late_phase: Annotated[
        float,
        Meta(ge=0.0, le=1.0, description="share of mid-fight starts below the threshold of a phase that begin in it"),
    ] = 0.8
    curriculum: Annotated[
        float,
        Meta(
            ge=0.0, le=1.0, description="how strongly mid-fight starts favour those won half of the time; 0 not at all"
        ),
    ] = 0.0


class GymConfig(Struct, frozen=True):
    """Any Gymnasium environment with discrete actions; used with world = "gym"."""

    id: Annotated[str, Meta(description="id of the environment")] = "CartPole-v1"
    kwargs: Annotated[dict[str, bool | int | float | str], Meta(description="keyword arguments of gymnasium.make")] = {}
    number: Annotated[int, Meta(ge=1, le=4096, description="environments in parallel")] = 8


class NetworkConfig(Struct, frozen=True):
    """The network's shape."""

    hidden: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=65_536)], ...], Meta(description="widths of the hidden layers")
    ] = (128, 128)
    activation: Annotated[Literal["relu", "tanh", "silu", "leaky_relu"], Meta(description="between the layers")] = (
        "relu"
    )
    layer_norm: Annotated[bool, Meta(description="normalise after every hidden layer")] = False
    orthogonal: Annotated[bool, Meta(description="orthogonal initial weights; otherwise torch's own")] = True
    normalize: Annotated[bool, Meta(description="scale the inputs by their running mean and deviation")] = False
    separate: Annotated[bool, Meta(description="separate networks for policy and value, where there are both")] = False


class ReplayConfig(Struct, frozen=True):
    """The replay buffer of off-policy algorithms."""

    capacity: Annotated[int, Meta(ge=1, description="transitions kept")] = 262_144
    prioritized: Annotated[bool, Meta(description="sample by priority instead of uniformly")] = False
    alpha: Annotated[float, Meta(ge=0.0, le=1.0, description="exponent of priorities")] = 0.6
    beta: Annotated[float, Meta(ge=0.0, le=2.0, description="exponent of importance weights at the start")] = 0.4
    final_beta: Annotated[float, Meta(ge=0.0, le=2.0, description="exponent of importance weights at the end")] = 1.0


class DemosConfig(Struct, frozen=True):
    """Recorded fights to learn from, for algorithms that can; given by --demos."""

    files: Annotated[
        tuple[str, ...], Meta(description="recordings (.npz, .json) of the fight, by any player; a run keeps copies")
    ] = ()
    share: Annotated[float, Meta(ge=0.0, le=1.0, description="share of a batch that is demonstrated, at first")] = 0.5
    final_share: Annotated[float, Meta(ge=0.0, le=1.0, description="the same after share_steps")] = 0.0
    share_steps: Annotated[int, Meta(ge=1, description="environment steps until the final share")] = 100_000
    margin: Annotated[
        float,
        Meta(ge=0.0, le=100.0, description="margin by which the demonstrated action should be valued above all others"),
    ] = 0.1
    margin_weight: Annotated[float, Meta(ge=0.0, le=100.0, description="weight of the margin loss")] = 1.0


class FleetConfig(Struct, frozen=True):
    """Workers on many machines, or in several processes; used by souls serve, souls join and souls train --workers."""

    number: Annotated[
        int, Meta(ge=0, le=65_536, description="fights (or environments) a worker plays in parallel; 0: as the run")
    ] = 0
    chunk_rows: Annotated[int, Meta(ge=1, le=16_384, description="maximum transitions in a chunk")] = 512
    chunk_s: Annotated[float, Meta(ge=0.01, description="seconds after which a partial chunk is sent")] = 1.0
    max_lag: Annotated[
        int, Meta(ge=0, description="how many policy versions a rollout may lag; older ones are discarded and counted")
    ] = 4
    publish_every_s: Annotated[
        float, Meta(ge=0.0, description="minimum seconds between policy versions of off-policy algorithms")
    ] = 1.0
    half_precision: Annotated[
        bool, Meta(description="send policies in half precision: half the bytes, useful over the internet")
    ] = False
    max_chunks: Annotated[
        int,
        Meta(
            ge=2,
            description="maximum chunks of one name in Redis; beyond that simulated workers wait and games drop some",
        ),
    ] = 4096
    largest_share: Annotated[
        float, Meta(ge=0.01, le=1.0, description="maximum share of the replay for one name; more rows are dropped")
    ] = 0.3
    share_names: Annotated[
        int, Meta(ge=2, description="number of names in the replay from which this limit applies")
    ] = 5
    spot_checks: Annotated[
        Literal["gateway", "on", "off"],
        Meta(
            description="replay what workers played in the simulator, and revoke those whose experience differs: "
            "while a gateway is open, always, or never"
        ),
    ] = "gateway"
    checked_share: Annotated[
        float, Meta(ge=0.0, le=1.0, description="share of experience that is replayed once a name has passed probation")
    ] = 1.0
    probation_fights: Annotated[
        int, Meta(ge=1, description="replayed fights that must match before a name passes probation")
    ] = 20
    probation_share: Annotated[
        float, Meta(ge=0.0, le=1.0, description="maximum share of the replay for all names on probation together")
    ] = 0.1
    messages_per_s: Annotated[
        float, Meta(ge=1.0, description="messages per second of one name; more lock it out for a minute")
    ] = 2000.0
    largest_reward: Annotated[
        float,
        Meta(
            ge=0.0,
            description="largest absolute reward per decision that workers may send; 0: 20 times all "
            "weights of a fight's reward, or 10,000",
        ),
    ] = 0.0
    buffer_mb: Annotated[
        float, Meta(ge=1.0, description="megabytes of experience a worker keeps while Redis is unreachable")
    ] = 64.0
    memory_mb: Annotated[int, Meta(ge=64, description="maximum memory of the learner's own Redis, in megabytes")] = 1024
    beat_s: Annotated[float, Meta(ge=0.1, description="seconds between heartbeats of a worker")] = 2.0
    silent_after_s: Annotated[
        float, Meta(ge=0.2, description="seconds without a heartbeat until a worker counts as silent")
    ] = 10.0
    hang_s: Annotated[float, Meta(ge=1.0, description="seconds without a step until a worker is restarted")] = 60.0


class CommonConfig(Struct, frozen=True):
    """All settings of a run."""

    world: Annotated[Literal["fight", "gym"], Meta(description="what to train on")] = "fight"
    algorithm: Annotated[AlgorithmName, Meta(description="what learns")] = DEFAULT_ALGORITHM
    run: RunConfig = field(default_factory=RunConfig)
    fight: FightConfig = field(default_factory=FightConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    actions: ActionsConfig = field(default_factory=ActionsConfig)
    starts: StartsConfig = field(default_factory=StartsConfig)
    gym: GymConfig = field(default_factory=GymConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    demos: DemosConfig = field(default_factory=DemosConfig)
    fleet: FleetConfig = field(default_factory=FleetConfig)

    def section(self, kind: type[T]) -> T:
        """The section that is of a kind, such as that of an algorithm."""
        sections = (getattr(self, name) for name in self.__struct_fields__)
        return next(section for section in sections if isinstance(section, kind))

    def side_by_side(self) -> tuple[str, int]:
        """The key that says how many fights or environments are played at once, and their number."""
        return ("fight.number", self.fight.number) if self.world == "fight" else ("gym.number", self.gym.number)


if TYPE_CHECKING:
    Config = CommonConfig
else:
    for taken in set(algorithm_settings()) & set(CommonConfig.__struct_fields__):
        raise TypeError(f"the algorithm {taken} has the name of a common section; rename its folder")
    Config = defstruct(
        "Config",
        [(name, found.section, field(default_factory=found.section)) for name, found in algorithm_settings().items()],
        bases=(CommonConfig,),
        module=__name__,
        namespace={"__doc__": CommonConfig.__doc__},
        frozen=True,
    )
