"""MariaDB's SET STATEMENT variable = value, … FOR statement: which variables need no more than what
the event says of its session.

The QUERY event is written while the variables hold, so its own status variables have their values
already (seen on 10.11.18).
"""

from __future__ import annotations

import re

from applier.errors import ReplicationError
from applier.tables.sql.statement_kind import set_statement_names

IN_THE_EVENT = frozenset(
    """
        sql_mode foreign_key_checks unique_checks sql_auto_is_null character_set_client
        character_set_connection character_set_server
        collation_connection collation_server collation_database character_set_database time_zone
        lc_time_names timestamp
        auto_increment_increment auto_increment_offset explicit_defaults_for_timestamp
        check_constraint_checks insert_id
        last_insert_id rand_seed1 rand_seed2 sql_if_exists
    """.split()
)
"""The event, its header or an event before it says their values."""
WITHOUT_EFFECT = frozenset(
    """
        alter_algorithm analyze_sample_percentage binlog_annotate_row_events binlog_format
        binlog_row_image eq_range_index_dive_limit
        expensive_subquery_limit gtid_domain_id histogram_size histogram_type
        idle_transaction_timeout innodb_compression_default
        innodb_lock_wait_timeout innodb_strict_mode innodb_table_locks innodb_tmpdir
        interactive_timeout lc_messages
        lock_wait_timeout log_queries_not_using_indexes log_slow_rate_limit log_slow_verbosity
        long_query_time
        low_priority_updates max_error_count max_heap_table_size max_length_for_sort_data
        max_recursive_iterations
        max_rowid_filter_size max_seeks_for_key max_session_mem_used max_statement_time
        min_examined_row_limit
        myisam_repair_threads myisam_stats_method net_read_timeout net_retry_count net_write_timeout
        old_alter_table profiling
        profiling_history_size progress_report_time pseudo_slave_mode query_cache_type
        query_prealloc_size server_id
        session_track_schema skip_replication slow_query_log sql_log_bin sql_log_off sql_notes
        sql_safe_updates sql_warnings
        system_versioning_alter_history transaction_isolation transaction_read_only tx_isolation
        tx_read_only
        updatable_views_with_limit use_stat_tables userstat wait_timeout wsrep_on wsrep_sync_wait
    """.split()
)
_WITHOUT_EFFECT = re.compile(
    r"optimizer_\w+|(?:\w+_)?buffer_size|\w+_block_size|join_\w+|tmp_\w+|deadlock_\w+|slow_\w+"
)


def check_variables(sql: str) -> None:
    """Raises ReplicationError 1235 for a SET STATEMENT with a variable that might change rows in a
    way that is not known here."""
    for name in set_statement_names(sql):
        if (
            name not in IN_THE_EVENT
            and name not in WITHOUT_EFFECT
            and _WITHOUT_EFFECT.fullmatch(name) is None
        ):
            raise ReplicationError(
                1235,
                f"SET STATEMENT {name} is not supported in memory: what it does to the statement is"
                f" not known: {sql[:80]!r}",
                hint="skip it with --skip-errors 1235, or replay into a test DB",
            )
