"""Prices measured: cells, the targets that they run on, and the fit."""
