"""`PathBudget` for millions of requests: the same numbers, worked out once each."""

from pathbudget.analysis.budget import PathBudget


class QuickBudget(PathBudget):
    """All lines of one path."""
