"""What a replica shows of itself: SHOW REPLICA STATUS and the replication tables of
performance_schema."""
