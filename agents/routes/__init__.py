"""``pathbudget routes``: what is stable, what moved, and what it cost."""
