"""What the work costs: units, calibrations, settings, scenarios, the price of a transaction."""
