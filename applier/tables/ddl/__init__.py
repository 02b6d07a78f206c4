"""DDL carried out: tables made, altered, renamed and dropped, with their rows."""
