"""Options and arguments that several commands share."""
