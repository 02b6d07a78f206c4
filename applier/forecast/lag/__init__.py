"""The lag to come: a log's transactions applied in every scenario, and what would mend it."""
