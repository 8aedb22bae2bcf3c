"""The `upload` probe: what a prompt costs to send."""
