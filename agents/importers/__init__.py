"""Results of other people's tools, as the same records."""
