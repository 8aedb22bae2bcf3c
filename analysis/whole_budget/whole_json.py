"""Whole budgets and what-ifs as JSON for a pipeline. The fields are those of `results`."""

from collections.abc import Sequence

import msgspec

from pathbudget.analysis.whole_budget.results import WhatIf, WholeBudget

VERSION = 1


def budgets_json(budgets: Sequence[WholeBudget], left_out: Sequence[str] = ()) -> str:
    """``{"schema": 1, "whole_budgets": [...], "left_out": [...]}``, indented."""
    return _written({"whole_budgets": tuple(budgets), "left_out": tuple(left_out)})


def what_ifs_json(found: Sequence[WhatIf], left_out: Sequence[str] = ()) -> str:
    """``{"schema": 1, "what_ifs": [...], "left_out": [...]}``, indented."""
    return _written({"what_ifs": tuple(found), "left_out": tuple(left_out)})


def _written(content: dict[str, object]) -> str:
    encoded = msgspec.json.encode({"schema": VERSION, **content})
    return msgspec.json.format(encoded, indent=1).decode() + "\n"
