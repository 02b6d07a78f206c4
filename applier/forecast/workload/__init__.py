"""What a log asks of a replica: its transactions, summed up."""
