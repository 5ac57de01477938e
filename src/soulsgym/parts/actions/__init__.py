"""Action sets: which of the twenty actions an agent may choose from."""

from soulsgym.parts.actions.action_set import PRESETS, ActionSet, make_actions

__all__ = ["PRESETS", "ActionSet", "make_actions"]
