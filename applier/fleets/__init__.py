"""Forecasts of many sources at once: what each one's replica will lag by, which tables cause it,
and what would fix it."""
