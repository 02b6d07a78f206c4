"""How far behind a replica will be: the workload of a log, what it costs, and the replica's clock."""
