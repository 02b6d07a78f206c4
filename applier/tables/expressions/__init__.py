"""SQL expressions: from text to operands to values; functions, operators, defaults."""
