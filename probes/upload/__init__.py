"""How long a prompt takes to get there: the `upload` probe, and its flights as they leave."""
