"""Values of one column type as those of another, when a table is altered."""
