"""Row images: decoded, shown as values, and matched with the columns of a local table."""
