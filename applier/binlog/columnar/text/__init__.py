"""Events as the lines of `binlag events`: `text_lines` runs the kernel of `text_kernel`, which
writes the values of columns by `text_columns`, and so by `text_values`, `text_doubles` and
`text_json`."""
