"""A siting study on a published latency matrix."""

# %% [markdown]
# Where do the GPUs go? A siting study on a published latency matrix: median round trips between
# cloud regions, and where the regions are.
#
# python examples/notebooks/siting.py FOLDER
#
# FOLDER holds `azure_p50_2026.csv` (a square matrix in ms with a heading) and
# `azure_region_coordinates.json` (name to lat, lon, displayName). Medians carry no interval, so
# the answer is exact for these medians and says nothing of tails: measure what is chosen.

# %%
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from pathbudget.analysis.siting.programs import Program, answer
from pathbudget.sites.geodesy import distance_km, floor_rtt_ms
from pathbudget.sites.shipped import shipped_catalogue

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
pd.set_option("display.width", 80)
pd.set_option("display.max_columns", 20)

# %% [markdown]
# The matrix as it is published: some cells are empty, and not every row has a column.

# %%
matrix = pd.read_csv(folder / "azure_p50_2026.csv", index_col=0)
names = [name for name in matrix.index if name in matrix.columns]
rtt = matrix.loc[names, names].astype(float)
places = json.loads((folder / "azure_region_coordinates.json").read_text())
at = {place["displayName"]: (place["lat"], place["lon"]) for place in places.values()}
known = [name for name in names if name in at]
rtt = rtt.loc[known, known]
print(f"{len(known)} regions; {int(rtt.isna().to_numpy().sum()) - len(known)} pairs are empty.")

# %% [markdown]
# Can it be true? Light in fibre needs at least this long; the ratio is the inflation of the path.

# %%
floor = pd.DataFrame(
    [[floor_rtt_ms(distance_km(*at[a], *at[b])) for b in known] for a in known],
    index=known,
    columns=known,
)
far = floor > 2
inflation = (rtt / floor).where(far).stack()
print(f"Inflation over fibre: median {inflation.median():.2f}, 5 to 95 %: "
      f"{inflation.quantile(0.05):.2f} to {inflation.quantile(0.95):.2f}.")  # fmt: skip
print(f"Faster than light: {int((inflation < 1).sum())} pairs.")
worst = inflation.sort_values(ascending=False).head(5)
print(worst.round(1).to_string(header=False))

# %% [markdown]
# Users are where the regions are, all of one weight; each region may also be a site. A region
# reaches a site in its own place within 2 ms. Empty pairs cannot serve: nothing is made up.

# %%
cost = rtt.to_numpy(copy=True)
np.fill_diagonal(cost, 2.0)
cost[np.isnan(cost)] = np.inf
weights = np.ones(len(known))
tiers = shipped_catalogue().tiers
allowance = {name: tier.network_allowance_ms for name, tier in tiers.items()}

rows = []
for k in range(1, 9):
    best = answer(Program(cost=cost, weights=weights, k=k))
    chosen = cost[:, list(best.columns)].min(axis=1)
    rows.append(
        {
            "k": k,
            "mean_ms": best.value / weights.sum(),
            "worst_ms": chosen.max(),
            "proved": best.proved,
            **{name: f"{(chosen <= ms).mean():.0%}" for name, ms in allowance.items()},
        }
    )
sweep = pd.DataFrame(rows).set_index("k").round(1)
print("\nk sites with the least mean round trip, and whom each tier's allowance then covers:")
print(sweep.to_string())

# %% [markdown]
# How many sites does each tier need, if every region is to be within its allowance?

# %%
print()
for name, ms in allowance.items():
    within = np.where(cost <= ms, 0.0, np.inf)
    fewest = answer(
        Program(cost=within, weights=weights, opening=np.ones(len(known)), serve_all=True)
    )
    if fewest.feasible:
        print(f"{name}: {len(fewest.columns)} sites bring all regions within {ms:g} ms.")

# %% [markdown]
# Take four, and lose one of them: what is left of the choice?

# %%
best = answer(Program(cost=cost, weights=weights, k=4))
sites = [known[i] for i in best.columns]
print(f"\nFour sites: {', '.join(sites)} (proved: {best.proved}).")
table = pd.DataFrame(cost[:, list(best.columns)], index=known, columns=sites)
rows = {}
for site in sites:
    rest = table.drop(columns=site).min(axis=1)
    served = rest[np.isfinite(rest)]
    rows[site] = {
        "mean_ms": served.mean(),
        "worst_ms": served.max(),
        "regions_moved": int((table.idxmin(axis=1) == site).sum()),
        "regions_lost": len(rest) - len(served),
    }
losses = pd.DataFrame.from_dict(rows, orient="index")
losses.index.name = "without"
print(losses.round(1).to_string())
runner_up = answer(Program(cost=cost, weights=weights, k=4, forbidden=(best.columns,)))
margin = (runner_up.value - best.value) / weights.sum()
others = sorted({known[i] for i in runner_up.columns} - set(sites))
gone = sorted(set(sites) - {known[i] for i in runner_up.columns})
print(f"Next best, {margin:.2f} ms worse on average: {', '.join(others)} for {', '.join(gone)}.")
