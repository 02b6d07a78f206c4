"""Bytes to events to row images."""
