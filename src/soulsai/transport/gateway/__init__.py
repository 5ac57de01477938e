"""The door for strangers: our frames over WebSockets, in front of a Redis that they never see."""
