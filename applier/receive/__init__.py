"""The live receiver: the source's dump, written into relay logs."""
