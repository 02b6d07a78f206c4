"""A replica's clock: when each transaction is done, and what the server shows of that lag."""
