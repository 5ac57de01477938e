"""Every key of a config, with its default, meaning and limits. Each object is given only its own section."""

from __future__ import annotations

from dataclasses import dataclass, field

from soulsai.config.setting import setting

STANDARD, DRAWN = "standard", "drawn:"
"""As soulsgym.spec has them, which takes a moment to load."""
DEFAULT_BOSS = "iudex"
"""Whom to fight where neither a config nor an option nor a recording says."""


@dataclass(frozen=True)
class RunConfig:
    """How long, how often saved and measured, on what."""

    seed: int = setting(0, "all randomness flows from this number", low=0, high=2**63 - 1)
    steps: int = setting(20_000_000, "environment steps of 0.1 s (or of the Gymnasium environment) to train", low=1)
    device: str = setting("auto", "where the network is trained; auto takes CUDA if there is one",
                          choices=("auto", "cpu", "cuda"))  # fmt: skip
    threads: int = setting(0, "processor threads for network and simulator; 0 takes all cores", low=0, high=256)
    checkpoint_every_s: float = setting(30.0, "seconds between checkpoints", low=0.0)
    keep_checkpoints: int = setting(2, "checkpoints kept; older ones are deleted", low=2, high=1000)
    log_every_s: float = setting(1.0, "seconds between rows of metrics; 0 writes one for every update", low=0.0)
    evaluate_every_steps: int = setting(1_000_000, "steps between greedy evaluations while training; 0 for none", low=0)
    evaluation_fights: int = setting(200, "fights (or episodes) of an evaluation while training", low=1, high=100_000)
    record_every_s: float = setting(20.0, "seconds between evaluations with fights recorded for the viewer; 0 never",
                                    low=0.0)  # fmt: skip
    final_fights: int = setting(1000, "fights (or episodes) of the evaluation after training; 0 for none", low=0)
    stop_at: float = setting(0.0, "end early when two evaluations in a row reach this win rate (or return); 0 never")
    accept: tuple[str, ...] = setting((), "findings of the preflight that are intended, by name")


@dataclass(frozen=True)
class FightConfig:
    """The fight to train on; used with world = "fight"."""

    engine: str = setting("sim", "what runs the fights: the simulator, or the running game, one fight at a time",
                          choices=("sim", "game"))  # fmt: skip
    boss: str = setting(DEFAULT_BOSS, "whom to fight: a name, or the path of a boss file")
    variants: tuple[str, ...] = setting(("standard",), "the boss's files, with as many fights each: names, paths of "
                                        "overlay files, drawn:N for N drawn ones that training renews")  # fmt: skip
    draw_strength: float = setting(1.0, "how far drawn files are from the boss's own; 1: as far as those are unsure",
                                   low=0.0, high=2.0)  # fmt: skip
    phase: int = setting(1, "phase in which a standard fight begins", low=1, high=9)
    full: bool = setting(True, "the boss goes on to his next phase; otherwise he stays in one for all his health")
    randomize: float = setting(0.0, "strength of domain randomisation", low=0.0, high=1.0)
    number: int = setting(512, "fights side by side", low=1, high=65_536)
    decisions: bool = setting(True, "steps without a choice are played at once and merged into the decision before")
    step_limit: int = setting(3000, "steps after which a fight is cut off", low=1)
    no_hit: bool = setting(False, "the first hit taken ends the fight as lost")
    ending: str = setting("standard", "what else ends a fight of training: standard for nothing, or one of fight.parts")
    parts: tuple[str, ...] = setting((), "your own Python files that register parts: reward terms, rewards, encoders, "
                                     "action sets, endings, starts")  # fmt: skip

    @property
    def main_variant(self) -> str:
        """The first of the variants that is one file, or the standard one: the agent is measured on it."""
        return next((variant for variant in self.variants if not variant.startswith(DRAWN)), STANDARD)


@dataclass(frozen=True)
class EncoderConfig:
    """What the network sees of a fight."""

    name: str = setting("player", "player: what a player sees, relative and normalised; soulsai74: as SoulsAI; or one "
                        "of fight.parts")  # fmt: skip
    history: int = setting(1, "encodings stacked, the newest first", low=1, high=64)


@dataclass(frozen=True)
class RewardConfig:
    """What is good and what is bad."""

    preset: str = setting("duel", "terms and weights to begin with: duel, soulsgym, rl-souls, or one of fight.parts")
    weights: dict[str, float] = setting({}, "weights that replace those of the preset, by term")


@dataclass(frozen=True)
class ActionsConfig:
    """The actions the agent may choose from."""

    preset: str = setting("all", "all: 20; reduced: 16 with four rolls; no-parry: 19; or one of fight.parts")
    names: tuple[str, ...] = setting((), "exactly these actions instead of the preset's, by name")
    masks: bool = setting(True, "actions without effect are closed to the agent, in acting and in learning")


@dataclass(frozen=True)
class StartsConfig:
    """How training fights begin. Evaluations always begin with the standard start."""

    name: str = setting(
        "standard", "standard: as the keys below say; or one of fight.parts, for which they mean nothing"
    )
    random_pose: bool = setting(False, "the player begins at one of the places around the arena")
    mid_fight: float = setting(0.0, "share of fights that begin somewhere in the middle", low=0.0, high=1.0)
    boss_hp_share: tuple[float, float] = setting((0.05, 1.0), "lowest and highest boss health of a mid-fight start")
    player_hp_share: tuple[float, float] = setting((0.3, 1.0), "lowest and highest player health of a mid-fight start")
    late_phase: float = setting(0.8, "share of mid-fight starts below the threshold of a phase that begin in it",
                                low=0.0, high=1.0)  # fmt: skip
    curriculum: float = setting(0.0, "how strongly mid-fight starts favour those won half of the time; 0 not at all",
                                low=0.0, high=1.0)  # fmt: skip


@dataclass(frozen=True)
class GymConfig:
    """Any Gymnasium environment with discrete actions; used with world = "gym"."""

    id: str = setting("CartPole-v1", "id of the environment")
    kwargs: dict[str, bool | int | float | str] = setting({}, "keywords for its maker")
    number: int = setting(8, "environments side by side", low=1, high=4096)


@dataclass(frozen=True)
class NetworkConfig:
    """The network's shape."""

    hidden: tuple[int, ...] = setting((128, 128), "widths of the hidden layers", low=1, high=65_536)
    activation: str = setting("relu", "between the layers", choices=("relu", "tanh", "silu", "leaky_relu"))
    layer_norm: bool = setting(False, "normalise after every hidden layer")
    orthogonal: bool = setting(True, "orthogonal initial weights; otherwise torch's own")
    normalize: bool = setting(False, "scale the inputs by their running mean and deviation")
    separate: bool = setting(False, "PPO: separate networks for policy and value")


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation; used with algorithm = "ppo"."""

    rollout: int = setting(32, "decisions of each fight between updates", low=1, high=65_536)
    epochs: int = setting(4, "passes over a rollout", low=1, high=100)
    minibatch: int = setting(2048, "decisions in a gradient step", low=1)
    learning_rate: float = setting(2e-3, "of Adam", low=0.0, high=1.0)
    final_learning_rate: float = setting(0.05, "share of the learning rate left at the end, reached linearly",
                                         low=0.0, high=1.0)  # fmt: skip
    adam_eps: float = setting(1e-5, "of Adam", low=0.0, high=1.0)
    gamma: float = setting(0.98, "discount of an environment step", low=0.0, high=1.0)
    lam: float = setting(0.9, "decay of advantages over a decision", low=0.0, high=1.0)
    clip: float = setting(0.2, "largest change of a probability ratio that still counts", low=0.0, high=10.0)
    value_clip: float = setting(0.0, "largest change of a value that still counts; 0 for no limit", low=0.0)
    entropy: float = setting(0.01, "weight of the entropy at the start", low=0.0, high=10.0)
    final_entropy: float = setting(0.001, "weight of the entropy at the end", low=0.0, high=10.0)
    value: float = setting(0.5, "weight of the value loss", low=0.0, high=100.0)
    gradient_norm: float = setting(0.5, "largest norm of a gradient; 0 for no limit", low=0.0)
    normalize_advantages: bool = setting(True, "per minibatch")
    target_kl: float = setting(0.0, "end the epochs of an update beyond this divergence; 0 for no limit", low=0.0)


@dataclass(frozen=True)
class ReplayConfig:
    """What the Q-learner remembers."""

    capacity: int = setting(262_144, "transitions kept", low=1)
    prioritized: bool = setting(False, "sample by priority instead of evenly")
    alpha: float = setting(0.6, "exponent of priorities", low=0.0, high=1.0)
    beta: float = setting(0.4, "exponent of importance weights at the start", low=0.0, high=2.0)
    final_beta: float = setting(1.0, "exponent of importance weights at the end", low=0.0, high=2.0)


@dataclass(frozen=True)
class QConfig:
    """Q-learning, composed; used with algorithm = "q"."""

    double: bool = setting(False, "the online network chooses the next action, the target network values it")
    twin: bool = setting(
        False, "two online networks; a coin decides which learns from the other; acting takes their sum"
    )
    clipped: bool = setting(False, "two networks learn; targets take the smaller of their two values, against optimism")
    dueling: bool = setting(False, "value and advantages apart")
    noisy: bool = setting(False, "exploration by learned noise in the weights of the head")
    noise: float = setting(0.5, "initial size of that noise", low=0.0, high=10.0)
    distribution: str = setting("none", "what is learned of the return: its mean, or its distribution",
                                choices=("none", "c51", "quantile"))  # fmt: skip
    atoms: int = setting(51, "atoms of c51, or quantiles", low=2, high=1001)
    value_range: tuple[float, float] = setting((-10.0, 10.0), "c51: lowest and highest return")
    n_step: int = setting(1, "decisions whose rewards are summed before the bootstrap", low=1, high=1000)
    gamma: float = setting(0.98, "discount of an environment step", low=0.0, high=1.0)
    batch: int = setting(256, "transitions in a gradient step", low=1)
    update_every: float = setting(8.0, "environment steps for each gradient step", low=1e-3)
    burst: int = setting(1, "gradient steps done together", low=1, high=100_000)
    warmup_steps: int = setting(2000, "environment steps before the first gradient step", low=0)
    random_warmup: bool = setting(False, "act at random until the warm-up is over")
    optimizer: str = setting("adam", "adam or adamw", choices=("adam", "adamw"))
    learning_rate: float = setting(1e-3, "of the optimizer", low=0.0, high=1.0)
    final_learning_rate: float = setting(1.0, "share of the learning rate left at the end, reached linearly",
                                         low=0.0, high=1.0)  # fmt: skip
    adam_eps: float = setting(1e-8, "of the optimizer", low=0.0, high=1.0)
    weight_decay: float = setting(0.0, "of adamw", low=0.0, high=1.0)
    loss: str = setting("huber", "of the mean", choices=("huber", "mse"))
    value_clip: float = setting(0.0, "targets are kept within plus and minus this; 0 for no limit", low=0.0)
    gradient_norm: float = setting(10.0, "largest norm of a gradient; 0 for no limit", low=0.0)
    target: str = setting("soft", "soft: a little after every period; hard: a copy", choices=("soft", "hard"))
    tau: float = setting(0.005, "share of the online network taken over by a soft update", low=0.0, high=1.0)
    target_period: int = setting(1, "gradient steps between target updates", low=1)
    epsilon: float = setting(1.0, "share of random actions at the start", low=0.0, high=1.0)
    final_epsilon: float = setting(0.02, "share of random actions at the end", low=0.0, high=1.0)
    epsilon_steps: int = setting(50_000, "environment steps until the final share", low=1)
    spread: float = setting(0.0, "exponent that spreads the share over the fights, large to small; 0 for one share",
                            low=0.0, high=20.0)  # fmt: skip


@dataclass(frozen=True)
class FleetConfig:
    """Workers on many machines, or in several processes; used by souls serve, souls join and souls train --workers."""

    number: int = setting(0, "fights (or environments) each worker plays side by side; 0: as many as the run's own",
                          low=0, high=65_536)  # fmt: skip
    chunk_rows: int = setting(512, "Q-learning: transitions in a chunk, at most", low=1, high=16_384)
    chunk_s: float = setting(1.0, "Q-learning: seconds after which a chunk is sent that is not full", low=0.01)
    max_lag: int = setting(4, "PPO: versions a rollout may be old; older ones are discarded and counted", low=0)
    publish_every_s: float = setting(1.0, "Q-learning: seconds between versions of the policy, at least", low=0.0)
    max_chunks: int = setting(4096, "chunks of one name in Redis; beyond them simulated workers wait, games drop some",
                              low=2)  # fmt: skip
    buffer_mb: float = setting(64.0, "unsent experience a worker keeps while Redis cannot be reached", low=1.0)
    memory_mb: int = setting(1024, "memory of the learner's own Redis, at most", low=64)
    beat_s: float = setting(2.0, "seconds between heartbeats of a worker", low=0.1)
    silent_after_s: float = setting(10.0, "seconds without a heartbeat after which a worker counts as silent", low=0.2)
    hang_s: float = setting(60.0, "seconds without a step after which a worker is restarted", low=1.0)


@dataclass(frozen=True)
class Config:
    """Everything that decides a run."""

    world: str = setting("fight", "what to train on", choices=("fight", "gym"))
    algorithm: str = setting("ppo", "what learns", choices=("ppo", "q"))
    run: RunConfig = field(default_factory=RunConfig)
    fight: FightConfig = field(default_factory=FightConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    actions: ActionsConfig = field(default_factory=ActionsConfig)
    starts: StartsConfig = field(default_factory=StartsConfig)
    gym: GymConfig = field(default_factory=GymConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    q: QConfig = field(default_factory=QConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    fleet: FleetConfig = field(default_factory=FleetConfig)
