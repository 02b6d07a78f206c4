"""The answer in words, as plain data and in a notebook, and against an earlier one."""
