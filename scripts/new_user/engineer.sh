#!/usr/bin/env bash
# An engineer with a captured log wants to know how late the replica will be, why, and a gate that
# keeps it from getting worse.
#   scripts/new_user/engineer.sh CHECKOUT WORK      # leaves forecast.html, baseline.json, gate.xml and comment.md in WORK
set -euo pipefail
checkout=$1 work=$2
mkdir -p "$work"
captured=$checkout/tests/captures/forecast

forecast() { binlag forecast "$captured/binlog.000001" --schema "$captured/schema.sql" "$@"; }

# As it is: the number, the tables behind it, a report for the team.
forecast --rows shop.audit_log=2000000 --report "$work/forecast.html"
forecast --rows shop.audit_log=2000000 --json >"$work/baseline.json"

# The gate in CI passes while nothing is worse, and fails with exit code 3 when the table has grown
# five times.
forecast --rows shop.audit_log=2000000 --baseline "$work/baseline.json" --markdown >"$work/comment.md"
code=0
forecast --rows shop.audit_log=10000000 --baseline "$work/baseline.json" --junit "$work/gate.xml" >/dev/null 2>&1 || code=$?
[ "$code" = 3 ] || { echo "the gate ended with $code, not 3" >&2; exit 1; }
echo "see $work/forecast.html; the gate is in $work/gate.xml"
