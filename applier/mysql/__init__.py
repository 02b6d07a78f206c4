"""A real MySQL or MariaDB server as the target of a replay: exactly once, resumable, as the log's
own events or as statements."""
