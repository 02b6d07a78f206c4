"""A second, naive implementation of the row lookup: every row is read, every read is counted. Slow
and literal on purpose."""
