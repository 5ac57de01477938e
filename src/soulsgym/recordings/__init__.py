"""Recordings of fights: write, read, and compare with the simulator."""

from soulsgym.recordings.recording import Recording, read_recording, write_recording

__all__ = ["Recording", "read_recording", "write_recording"]
