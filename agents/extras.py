"""Optional dependencies: what to say when one is not installed."""

import importlib.util

from pathbudget.probes.errors import PathbudgetError


def require(extra: str, *modules: str) -> None:
    """Raise PathbudgetError, naming the extra to install, when one of `modules` is not there."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise PathbudgetError(
            f"this needs {', '.join(missing)}; run: pip install 'pathbudget[{extra}]'"
        )
