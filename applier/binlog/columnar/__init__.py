"""Rows events straight into Arrow. `read_batches` is the way in; nothing heavy is imported before it is called."""

from applier.binlog.columnar.batches import TableBatch, read_batches

__all__ = ["TableBatch", "read_batches"]
