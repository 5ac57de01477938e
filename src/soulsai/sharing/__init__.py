"""Agents to share: a policy with its config and what was measured of it, checked, pushed and pulled."""
