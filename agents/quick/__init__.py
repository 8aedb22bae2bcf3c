"""A quick look at a few hosts from this machine, without any file."""
