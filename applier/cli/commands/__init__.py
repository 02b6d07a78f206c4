"""One module per command, and the parts of commands that are long."""
