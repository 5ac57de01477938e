"""What a learner remembers: accumulator -> store <- sampler. None of them knows of the others' insides."""

from soulsai.replay.givers import Givers
from soulsai.replay.n_step import NStepAccumulator
from soulsai.replay.prioritized import PrioritizedSampler
from soulsai.replay.sampler import UniformSampler
from soulsai.replay.segments import ReplaySegments, SegmentInfo
from soulsai.replay.store import Batch, ReplayStore, refuse_if_too_large

__all__ = [
    "Batch",
    "Givers",
    "NStepAccumulator",
    "PrioritizedSampler",
    "ReplaySegments",
    "ReplayStore",
    "SegmentInfo",
    "UniformSampler",
    "refuse_if_too_large",
]
