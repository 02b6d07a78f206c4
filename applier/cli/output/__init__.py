"""What commands print: tables, lists, Markdown, pictures, progress, log lines."""
