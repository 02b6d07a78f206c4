"""Which events and tables of a log are wanted."""
