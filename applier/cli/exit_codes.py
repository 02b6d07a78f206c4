"""Exit codes that several commands share; docs/reference/cli.md lists all of them."""

GATE_CROSSED = 3
"""A limit that the user set does not hold."""
