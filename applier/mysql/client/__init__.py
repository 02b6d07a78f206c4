"""The connection to a server: its address, encryption, compression, dialect and session."""
