"""Where a replay stands, kept on the server, and how it goes on from there."""
