"""How many words the log's changes put into FULLTEXT indexes, from a sample of images.

InnoDB reads a new or changed text again when its transaction commits, takes it apart and keeps each
word once with its places in it (fts_add_doc_by_id, fts_tokenize_document,
storage/innobase/fts/fts0fts.cc); what deletes a text only notes that. A word costs the more, the
more different ones there are: they stand in a tree.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from applier.binlog.charsets import charset
from applier.binlog.header import Event
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.forecast.inventory.facts import Texts
from applier.forecast.workload.sampled_rows import (
    ForEachHead,
    ReadRows,
    Row,
    before_and_after,
)
from lookup.table import TableDefinition

SHORTEST, LONGEST = 3, 84
"""Characters of a word that is kept (innodb_ft_min_token_size, innodb_ft_max_token_size)."""
STOPWORDS = frozenset(
    "about are com for from how that the this und was what when where who will with www".split()
)
"""Those of INNODB_FT_DEFAULT_STOPWORD that are long enough."""
FREE_DOUBLINGS = 4
"""Of the words that there are: so few cost nothing beside the text itself. Texts of 400 words out
of 40, 300, 5,000 and 100,000 different ones took a 9.7.4 0.25, 0.6, 2.8 and 4.5 ms more than
without the index."""
_WORD = re.compile(r"\w+")


def words_of(text: str) -> set[str]:
    """The words that an index keeps of a text."""
    found = {word for word in _WORD.findall(text.lower()) if SHORTEST <= len(word) <= LONGEST}
    return found - STOPWORDS


class FullText:
    """Shown rows events, it keeps what words they bring into the FULLTEXT indexes of tables."""

    def __init__(self, tables: Mapping[str, TableDefinition]) -> None:
        self._tables = tables
        indexes = {name: _columns(one) for name, one in tables.items()}
        self._indexes = {name: found for name, found in indexes.items() if found}
        """Table -> the columns of each of its FULLTEXT indexes."""
        self._rows = Counter[tuple[str, str]]()
        self._texts = Counter[tuple[str, str]]()
        self._words = Counter[tuple[str, str, tuple[int, ...]]]()
        """(Table, kind of change, an index's columns) -> words of its texts."""
        self._different: defaultdict[tuple[str, tuple[int, ...]], set[str]] = defaultdict(set)
        self._readers = ForEachHead(self._reader)

    def take(self, event: Event, head: RowsHead, table_map: TableMap) -> None:
        """Raises InputError for images that do not fit the table's map."""
        name, kind = table_map.full_name, head.kind
        indexes = self._indexes.get(name)
        if indexes is None or kind == "delete":
            return
        read = self._readers.of(head, table_map)
        if read is None:
            return
        for before, after in read(event):
            self._rows[name, kind] += 1
            for columns in indexes:
                if any(at in after and before.get(at) != after[at] for at in columns):
                    self._texts[name, kind] += 1
                    self._index(name, kind, columns, {**before, **after})

    def _index(self, name: str, kind: str, columns: tuple[int, ...], row: Row) -> None:
        words = set[str]()
        for at in columns:
            column = self._tables[name].columns[at]
            if isinstance(row.get(at), bytes):  # else NULL, or another table's column
                words |= words_of(charset(column.charset).decode(row[at]))
        self._words[name, kind, columns] += len(words)
        self._different[name, columns] |= words

    def texts(self) -> dict[str, dict[str, Texts]]:
        """Table -> kind of change -> what each of its rows brings."""
        found: dict[str, dict[str, Texts]] = {}
        for (name, kind), rows in self._rows.items():
            words = sum(
                count * max(math.log2(len(self._different[name, at]) or 1) - FREE_DOUBLINGS, 0.0)
                for (table, of_kind, at), count in self._words.items()
                if (table, of_kind) == (name, kind)
            )
            texts = self._texts[name, kind] / rows
            found.setdefault(name, {})[kind] = Texts(texts, words / rows)
        return found

    def _reader(self, head: RowsHead, table_map: TableMap) -> ReadRows | None:
        wanted = frozenset[int]().union(*self._indexes[table_map.full_name])
        return before_and_after(head, table_map, wanted)


def _columns(definition: TableDefinition) -> list[tuple[int, ...]]:
    return [tuple(key.columns) for key in definition.keys if key.kind == "fulltext"]
