"""Where the replica stands, and how that survives a crash."""
