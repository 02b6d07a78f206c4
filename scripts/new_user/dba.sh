#!/usr/bin/env bash
# A DBA with many schemas wants one list: which tables make a replica read too much, and the
# statements that mend them.
#   scripts/new_user/dba.sh CHECKOUT WORK      # leaves keys.csv, fixes.sql and keys.md in WORK
set -euo pipefail
checkout=$1 work=$2
mkdir -p "$work"

failed=0
schemas=$(grep -l 'CREATE TABLE' "$checkout"/demo/before.sql "$checkout"/tests/captures/forecast/schema.sql "$checkout"/tests/captures/open/*/before.sql)
for schema in $schemas; do
  binlag explain "$schema" --csv >>"$work/all.csv"
  { echo "## ${schema#"$checkout"/}"; echo; binlag explain "$schema" --markdown; echo; } >>"$work/keys.md"
  code=0
  binlag explain "$schema" --fail-on no-key >/dev/null 2>&1 || code=$?
  case $code in
    0) ;;
    3) failed=$((failed + 1)) ;;
    *) echo "explain $schema ended with $code" >&2; exit "$code" ;;
  esac
done

# One list over all schemas, the table that reads most rows for one change first; and its
# statements, to be read before they are run.
python3 - "$work" <<'PYTHON'
import csv
import sys
from pathlib import Path

work = Path(sys.argv[1])
rows = [row for row in csv.DictReader((work / "all.csv").open()) if row["table"] != "table"]
rows.sort(key=lambda row: -float(row["rows_read_per_change"] or "inf"))
with (work / "keys.csv").open("w", newline="") as file:
    writer = csv.DictWriter(file, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
(work / "fixes.sql").write_text("".join(f"{fix}\n" for fix in dict.fromkeys(row["fix"] for row in rows if row["fix"])))
PYTHON
echo "$failed schemas have a table without a key; see $work/keys.csv and $work/fixes.sql"
