#!/usr/bin/env bash
# Somebody who writes a consumer of the log wants the crash that breaks it, as one line to run
# again, and the right consumer beside it.
#   scripts/new_user/cdc_developer.sh CHECKOUT WORK      # leaves verdict.txt and changes.jsonl in WORK
set -euo pipefail
checkout=$1 work=$2
mkdir -p "$work"
cp "$checkout"/examples/saved_offset.py "$work"

# A consumer that saves its position before its rows are on disk: the plugin finds the crash that
# loses them.
cat >"$work/test_mine.py" <<'PYTHON'
from saved_offset import BeforeTheData, WithTheData


def test_mine(crash_test):
    crash_test(BeforeTheData)


def test_the_right_one(crash_test):
    crash_test(WithTheData)
PYTHON
(cd "$work" && python3 -m pytest -q -p no:cacheprovider test_mine.py >verdict.txt 2>&1) && { echo "the mistake was not found" >&2; exit 1; }
grep -q '^FAILED test_mine.py::test_mine' "$work/verdict.txt"
grep -q '1 failed, 1 passed' "$work/verdict.txt"

# What the consumer would read: each change of the demo's log as a line of JSON.
binlag events "$checkout/demo/binlog.000001" --rows --json >"$work/changes.jsonl"
echo "see $work/verdict.txt and $work/changes.jsonl"
