"""A whole budget out of measured services and a measured network."""

# %% [markdown]
# Who gets an answer in time? Measured times to first token and between tokens of real services, on
# top of a measured network, against a tier of 1.5 seconds.
#
# python examples/notebooks/llm_budget.py FOLDER
#
# FOLDER holds `llm/llmperf/*.json` (results of llmperf) and
# `ripe_atlas/fetchmesh_ping_2000.ndjson` (pings of RIPE Atlas probes to one anchor).

# %%
import sys
import textwrap
from pathlib import Path

import pandas as pd

from pathbudget.agents.importers.ripe_atlas import read_results
from pathbudget.analysis.evaluate import EvaluationOptions, evaluate_networks
from pathbudget.analysis.frames import (
    lines_frame,
    measurements_of,
    samples_frame,
    whole_budgets_frame,
    whole_terms_frame,
)
from pathbudget.analysis.whole_budget.evaluation import pair_request
from pathbudget.analysis.whole_budget.term_files import read_terms
from pathbudget.analysis.whole_budget.whole import whole_budget
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.shipped import shipped_catalogue

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
pd.set_option("display.width", 80)
pd.set_option("display.max_columns", 20)

# %% [markdown]
# The network. Every probe stands for a region of users, the anchor for the site. As a frame, the
# samples can be looked at and chosen from; here, the two probes with the shortest round trips
# and the one with the longest, of those that sent enough.

# %%
pings = samples_frame(read_results([folder / "ripe_atlas/fetchmesh_ping_2000.ndjson"]))
pings = pings[pings.metric == "rtt"]
trips = pings.groupby("region").value_ns
median = trips.median()[trips.size() >= 72].sort_values()  # fewer give a p95 no upper limit
chosen = [*median.index[:2], median.index[-1]]
samples = pings[pings.region.isin(chosen)].copy()
samples["site"] = "anchor"
tiers = {"rag": shipped_catalogue().tiers["rag"]}
options = EvaluationOptions(choose=(1,), percentiles=(50.0, 95.0))
network, sources = evaluate_networks(measurements_of(samples), Catalogue(tiers=tiers), options)
lines = lines_frame(network)
print("The network of a request with a long prompt (p95, allowance 70 ms):")
columns = ["region", "value_ms", "low_ms", "high_ms", "n", "n_effective", "verdict"]
print(lines[lines.headline][columns].round(1).to_string(index=False))

# %% [markdown]
# The services: each file gives a term for the first token and one for those after it. A request
# that failed is one that never came, not one that is left out. What nobody measured (gateway,
# retrieval, tokenization, guardrail) stands at the tier's allowance, and the result says so.

# %%
services = ("anyscale_70b", "fireworks_7b", "lepton_7b", "together_70b")
files = [folder / f"llm/llmperf/{service}.json" for service in services]
budgets = {
    (region, path.stem): whole_budget(
        pair_request((region, "anchor"), source, tiers["rag"], given=read_terms(path))
    )
    for path in files
    for (region, _), source in sources.items()
}
whole = whole_budgets_frame(budgets.values())
whole["service"] = [service for _, service in budgets]
first = whole[whole.region == chosen[0]]
columns = ["service", "value_ms", "low_ms", "high_ms", "breach", "failing", "verdict"]
print(f"\nThe whole request from {chosen[0]} (p95, target 1500 ms):")
print(first[columns].round(2).to_string(index=False))

# %% [markdown]
# Share of the requests over the target, for each service and region of users.

# %%
print("\nShare of requests over 1500 ms:")
breach = whole.pivot_table(index="service", columns="region", values="breach", sort=False)
breach.columns = [name.removeprefix("ripe-atlas-") for name in breach.columns]
print(breach.map("{:.0%}".format).to_string())

# %% [markdown]
# Where does the time go? Each term's part of a request about as slow as the p95: these add up to
# it. And what has to be mended first?

# %%
best = first.sort_values("value_ms").service.iloc[0]
anatomy = whole_terms_frame([budgets[chosen[0], best]])
columns = ["term", "source", "n", "losses", "value_ms", "contribution_ms", "headroom_ms"]
print(f"\n{best} from {chosen[0]}, term by term:")
print(anatomy[columns].round(1).to_string(index=False))
answer = budgets[chosen[0], best]
print()
print(textwrap.fill(f"{answer.verdict}: {answer.reason}", 80))
print(textwrap.fill(f"Fix first: {answer.fix_first or 'no single term'}. {answer.fix_reason}", 80))
