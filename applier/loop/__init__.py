"""What the replay loop keeps from one event to the next: the open transaction, XA, the position."""
