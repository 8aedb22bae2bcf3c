"""Which way packets went, when that changed, who changed it and what it cost (start at `model`)."""
