"""JSON documents in expressions."""
