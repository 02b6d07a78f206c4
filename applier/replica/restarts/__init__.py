"""A replica's next start with the files that a crash left."""
