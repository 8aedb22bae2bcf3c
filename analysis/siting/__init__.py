"""Which sites to take: the ground of a choice, the exact solvers, and how sure the answer is."""
