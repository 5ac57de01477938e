"""The `souls` command: one module per verb."""
