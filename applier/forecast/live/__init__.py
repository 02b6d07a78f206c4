"""A replica that runs: its settings, how far it is, and when it will have caught up."""
