"""``pathbudget trace``: the ways to a host, live in the terminal."""
