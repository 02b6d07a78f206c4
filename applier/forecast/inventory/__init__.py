"""What is known of the replica's tables: definitions, rows, pages, verdicts."""
