"""HTML pages that need nothing else: the report of a forecast, that of a fleet, their charts."""
