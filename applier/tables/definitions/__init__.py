"""What CREATE TABLE says: columns, types, keys and options, made a TableDefinition."""
