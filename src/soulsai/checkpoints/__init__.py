"""Checkpoints: everything a run needs to go on, in one folder that is whole or not there."""

from soulsai.checkpoints.store import Checkpoint, CheckpointStore

__all__ = ["Checkpoint", "CheckpointStore"]
