"""What the Q-learner remembers: accumulator -> store <- sampler. None of them knows of the others' insides."""

from soulsai.replay.memory import refuse_if_too_large
from soulsai.replay.n_step import NStepAccumulator
from soulsai.replay.prioritized import PrioritizedSampler
from soulsai.replay.sampler import Sampler
from soulsai.replay.segments import ReplaySegments, SegmentInfo
from soulsai.replay.store import Batch, TransitionStore
from soulsai.replay.transitions import Transitions
from soulsai.replay.uniform import UniformSampler

__all__ = [
    "Batch",
    "NStepAccumulator",
    "PrioritizedSampler",
    "ReplaySegments",
    "Sampler",
    "SegmentInfo",
    "TransitionStore",
    "Transitions",
    "UniformSampler",
    "refuse_if_too_large",
]
