"""Weeks of round trips: what moved, and what it cost."""

# %% [markdown]
# When did the path change, and what did it cost? Weeks of round trips that a RIPE Atlas probe
# measured, with the labels that people gave them.
#
# python examples/notebooks/monitoring.py FOLDER
#
# FOLDER holds `13746.csv.gz`: epoch;rtt;cp, a line every four minutes, rtt in ms, cp = 1 where a
# person saw a change.

# %%
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from pathbudget.analysis.evaluate import EvaluationOptions
from pathbudget.analysis.frames import evaluate_frames, lines_frame, summaries_frame
from pathbudget.analysis.routes.level_shifts import level_shifts
from pathbudget.analysis.routes.model import PathSeries
from pathbudget.probes.record import AddressFamily
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.shipped import shipped_catalogue

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
pd.set_option("display.width", 80)
pd.set_option("display.max_columns", 20)

# %% [markdown]
# The series as a frame of samples: whole nanoseconds, times with a zone, and losses as failures.

# %%
raw = pd.read_csv(folder / "13746.csv.gz", sep=";", parse_dates=["epoch"]).sort_values("epoch")
lost = raw.rtt.isna() | (raw.rtt <= 0) | (raw.rtt >= 1000)  # the source writes 1000 for a loss
samples = pd.DataFrame(
    {
        "region": "probe-13746",
        "site": "anchor",
        "probe": "icmp",
        "metric": "rtt",
        "sent": raw.epoch.dt.tz_localize("UTC"),
        "value_ns": (raw.rtt * 1e6).round().where(~lost),
        "failure_kind": np.where(lost, "timeout", None),
        "address": "192.0.2.1",
        "family": "ipv4",
    }
).reset_index(drop=True)
days = (samples.sent.iloc[-1] - samples.sent.iloc[0]).total_seconds() / 86400
print(f"{len(samples)} round trips in {days:.1f} days, {int(lost.sum())} lost.")

# %% [markdown]
# Level shifts, each with its window and its cost with an interval.

# %%
series = PathSeries("probe-13746", "probe-13746", "anchor", "anchor", "192.0.2.1",
                    AddressFamily.IPV4)  # fmt: skip
sent = samples.sent.dt.tz_localize(None).astype("datetime64[ns]").astype("int64").to_numpy()
values = samples.value_ns.fillna(np.inf).to_numpy(dtype=np.float64)
shifts = pd.DataFrame(
    {
        "by": pd.to_datetime(one.window.by_unix_ns, unit="ns", utc=True),
        "before_ms": one.before.value_ns / 1e6,
        "after_ms": one.after.value_ns / 1e6,
        "cost_ms": one.cost.value_ns / 1e6,
        "low_ms": one.cost.low_ns / 1e6,
        "high_ms": one.cost.high_ns / 1e6,
    }
    for one in level_shifts(series, "rtt", sent, values)
    if one.what == "rtt"
)
large = shifts[shifts.cost_ms.abs() >= 20].reset_index(drop=True)
print(f"\n{len(shifts)} shifts of the round trip; those of 20 ms or more:")
print(large.assign(by=large.by.dt.strftime("%d %b %H:%M")).round(1).to_string(index=False))

# %% [markdown]
# Do they agree with the people who labelled the series? Within half an hour counts.

# %%
labels = samples.sent[raw.cp.to_numpy() == 1]
near = [abs(labels - moment).min() <= pd.Timedelta(minutes=30) for moment in large.by]
print(f"\n{sum(near)} of these {len(large)} are where a person saw one too.")

# %% [markdown]
# Two periods beside each other: the budget lines of each, as one table. Did it break a budget?

# %%
tiers = {"rag": shipped_catalogue().tiers["rag"]}
options = EvaluationOptions(choose=(1,), percentiles=(50.0, 95.0))
middle = samples.sent.iloc[0] + (samples.sent.iloc[-1] - samples.sent.iloc[0]) / 2
periods = {"first half": samples.sent < middle, "second half": samples.sent >= middle}
evaluations = {
    name: evaluate_frames(samples[mask], Catalogue(tiers=tiers), options)
    for name, mask in periods.items()
}
lines = pd.concat(
    [lines_frame(one).assign(period=name) for name, one in evaluations.items()], ignore_index=True
)
warm = lines[(lines["mode"] == "warm") & (lines.direction == "network")
             & (lines.prompt_bytes == tiers["rag"].prompt_bytes)]  # fmt: skip
columns = ["period", "percentile", "value_ms", "low_ms", "high_ms", "n", "n_effective", "verdict"]
print("\nNetwork line of a request on a kept connection, long prompt (tier rag):")
print(warm[columns].round(1).to_string(index=False))

# %%
frame = pd.concat([summaries_frame(one).assign(period=name) for name, one in evaluations.items()])
columns = ["period", "n", "losses", "minimum_ms", "p50_ms", "p95_ms", "p99_ms"]
print("\nRound trips:")
print(frame[columns].round(1).to_string(index=False))
