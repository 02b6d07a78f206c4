"""Dumps as other programs write them: read, chosen from, renamed, and loaded into tables in
memory."""
