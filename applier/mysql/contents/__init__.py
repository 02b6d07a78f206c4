"""What a server holds: read as a dump, loaded, and compared with what a log leaves."""
