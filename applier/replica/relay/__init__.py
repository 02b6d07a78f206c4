"""Relay logs: written by the receiver, read by the applier, and their index."""
