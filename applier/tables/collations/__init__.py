"""Which texts are equal, and which comes first: weights, sort keys, padding."""
