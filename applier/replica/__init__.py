"""A replica in time: clock, coordinator and workers, relay logs, what it says about itself."""
