"""The replica itself: log in, rows out."""
