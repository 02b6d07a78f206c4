"""LIKE and REGEXP."""
