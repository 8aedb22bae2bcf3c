"""The end-to-end budget: eight terms, how they combine, what-ifs, and what to fix first."""
