"""Rows events straight into Arrow. `read_batches` is the way in; nothing heavy is imported before
it is called."""

from applier.binlog.columnar.batches import read_batches
from applier.binlog.columnar.table_batch import TableBatch

__all__ = ["TableBatch", "read_batches"]
