"""Workers on many machines, over Redis or Valkey."""
