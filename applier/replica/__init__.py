"""The emulated replica: relay logs, workers, recovery, storage, and which transactions a worker may
begin."""
