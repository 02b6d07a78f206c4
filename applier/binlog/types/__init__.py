"""Column values: one module per type family."""
