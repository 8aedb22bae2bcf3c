"""A week of trouble, in the lab in two minutes or three: what is said of it beside the truth.

    .venv/bin/python benchmarks/route_week.py --seeds 20 [--first 1] [--attempts 5] [--keep DIR]

Real BGP speakers (BIRD), real kernels, real probes: for each seed `pathbudget lab run` plays other
events (`--week SEED`) while `pathbudget run` measures (ICMP over 16 flows every 10 ms, traces every
2 s) and `pathbudget bgp run` listens. Then the store is evaluated and every incident is held
against the lab's ledger: reported once, in time, by a right name, at a cost whose interval holds
the truth; and nothing else. When the lab itself was late, for want of the host's time, packets felt
it and the ledger says so: incidents of those times are counted apart, and with `--attempts` a week
in which it was late on the whole is measured again, whatever was found in it. `--simulated` does
the same with tests/route_changes/week.py, in seconds a seed. Figures: docs/accuracy.md.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.route_changes.lab_truth import injected_of, stalls_of  # noqa: E402
from tests.route_changes.scoring import Score, score  # noqa: E402
from tests.route_changes.week import COMPRESSED, EVERY, Week  # noqa: E402

from pathbudget.agents.lab.ledger import Ledger  # noqa: E402
from pathbudget.agents.lab.weeks import LENGTH_NS, SICK_NS, random_week  # noqa: E402
from pathbudget.agents.lab.world_file import load_world  # noqa: E402
from pathbudget.analysis.routes.model import Incident  # noqa: E402

EXAMPLES = ROOT / "examples" / "lab"
SCALE = 0.05
SECOND = 1_000_000_000
EVERY_MS = 10
INTERVAL_NS = EVERY_MS * 1_000_000
SLACK_NS = 150_000_000
"""Until an order to the lab has reached its link process, and the probe has come round."""

QUIET_US = 200.0
"""Own error of the lab at p99 up to which it is the network of its file: twice the smallest change
that anybody is told of."""

SETTLED_NS = 2 * SECOND
"""What happened before everybody had measured for so long is not judged: on a busy host a campaign
takes seconds to begin."""

CAMPAIGN = """
name = "week"
catalogue = "{catalogue}"
duration = "{seconds}s"
seed = {seed}

[limits]
packets_per_second = 3000
packets_per_second_per_target = 2000

{vantages}
[[probe]]
kind = "icmp"
families = ["ipv4"]
interval = "{every}ms"
schedule = "periodic"
flows = 16

[[probe]]
kind = "trace"
families = ["ipv4"]
interval = "2s"
max_packets = 250
"""
VANTAGE = '[[vantage]]\nname = "{0}"\nregion = "{0}"\nnamespace = "lab:{0}"\n\n'
FEEDS = """
catalogue = ["{catalogue}"]
settle = "60s"

[[feed]]
name = "feed"
kind = "session"
listen = "{address}:{port}"
peer = "{peer}"
peer_asn = {peer_asn}
local_asn = {asn}
router_id = "{address}"
families = ["ipv4"]
hold_time = "3s"
"""


def inside(folder: Path, seed: int, seconds: int) -> None:
    """In the lab: hear BGP and measure at once."""
    from pathbudget.agents.lab import namespaces
    from pathbudget.agents.lab.session import current

    lab = current()
    assert lab is not None
    catalogue = EXAMPLES / "routes-catalogue.toml"
    vantages = "".join(VANTAGE.format(name) for name in ("west", "east", "north"))
    campaign = CAMPAIGN.format(
        catalogue=catalogue, seconds=seconds, seed=seed, vantages=vantages, every=EVERY_MS
    )
    (folder / "campaign.toml").write_text(campaign)
    listener = lab.listeners["feed"]
    values = {
        "catalogue": catalogue, "address": listener.address, "port": listener.port,
        "peer": listener.peer_address, "peer_asn": listener.peer_asn, "asn": listener.asn,
    }  # fmt: skip
    (folder / "feeds.toml").write_text(FEEDS.format(**values))
    program = [str(Path(sys.executable).with_name("pathbudget"))]
    with Path(lab.nodes[listener.at].namespace).open() as there, namespaces.inside(there.fileno()):
        feed = subprocess.Popen(
            [*program, "bgp", "run", "feeds.toml", "--store", "store"],
            cwd=folder,
            stdout=(folder / "feed.txt").open("w"),
            stderr=subprocess.STDOUT,
        )
    run = subprocess.run(
        [*program, "run", "campaign.toml", "--store", "store"],
        cwd=folder, stdout=(folder / "run.txt").open("w"), stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    feed.send_signal(signal.SIGTERM)
    feed.wait(20)
    sys.exit(run.returncode)


def week_seconds(seed: int) -> int:
    """How long the week of a seed takes, and a little more."""
    world = random_week(load_world(EXAMPLES / "routes.toml"), seed)
    sick = sum(event.member is not None for event in world.events)
    return (LENGTH_NS + sick * SICK_NS) // SECOND + 4


def measure(seed: int, folder: Path, seconds: int) -> None:
    """One week: its store and its ledger are in the folder afterwards."""
    program = str(Path(sys.executable).with_name("pathbudget"))
    truth = str(folder / "truth.json")
    command = [
        program, "lab", "run", str(EXAMPLES / "routes.toml"), "--ledger", truth,
        "--week", str(seed), "--", sys.executable, __file__, "--inside", str(folder),
        "--first", str(seed), "--seconds", str(seconds),
    ]  # fmt: skip
    with (folder / "lab.txt").open("w") as log:
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)


def judged(folder: Path) -> tuple[Score, list[Incident], Ledger]:
    """Evaluate what is in a folder, and score it."""
    from pathbudget.agents.bgp.feeds_file import load_feeds
    from pathbudget.agents.routes.evaluation import RouteWish, routes_of_store
    from pathbudget.agents.store.parquet import Store
    from pathbudget.sites.catalogue_file import load_catalogue
    from pathbudget.sites.prefixes import load_prefix_table

    ledger = Ledger.decode((folder / "truth.json").read_bytes())
    wish = RouteWish(time_scale=SCALE, feeds=load_feeds(folder / "feeds.toml"))
    catalogue = load_catalogue([EXAMPLES / "routes-catalogue.toml"])
    origins = load_prefix_table(EXAMPLES / "routes-prefixes.csv")
    report = routes_of_store(Store(folder / "store"), wish, catalogue, origins)
    began = max(line.starts_unix_ns[0] for line in report.timelines) + SETTLED_NS
    truth = [one for one in injected_of(ledger) if one.at_unix_ns >= began]
    before = [one.until_unix_ns or 0 for one in injected_of(ledger) if one.at_unix_ns < began]
    began = max([began, *(until + SECOND for until in before)])
    incidents = [one for one in report.incidents if one.window.by_unix_ns >= began]
    result = score(truth, incidents, INTERVAL_NS + SLACK_NS, stalls_of(ledger))
    return result, incidents, ledger


def simulated(seed: int) -> Score:
    """The week of tests/route_changes/week.py."""
    from pathbudget.analysis.routes.evaluate import evaluate_routes

    week = Week(seed)
    report = evaluate_routes(week.measurements(), week.updates(), options=COMPRESSED)
    result = score(week.injected(), report.incidents, round(EVERY * SECOND))
    print(f"seed {seed}: {'as injected' if result.is_perfect else result}", flush=True)
    return result


def show(
    seed: int, result: Score, incidents: list[Incident], ledger: Ledger, *, all_: bool
) -> None:
    word = "as injected" if result.is_perfect else "with faults"
    print(f"seed {seed}: {len(result.found)} of {result.injected} found, {word}", flush=True)
    late_s = sum(one.ended_unix_ns - one.began_unix_ns for one in ledger.stalls) / SECOND
    lasted_s = (ledger.ended_unix_ns - ledger.began_unix_ns) / SECOND
    error = f"{ledger.error_p99_us:.0f} us at p99"
    print(f"    the lab's own error: {error}; late for {late_s:.1f} of {lasted_s:.0f} s")
    for name in ("missed", "twice", "false", "late", "wrong_cause", "wrong_cost", "stalled"):
        for text in getattr(result, name):
            print(f"    {name}: {text}")
    if not all_:
        return
    for entry in ledger.entries:
        start = entry.start
        at = "-" if start is None else f"{(start.began_unix_ns - ledger.began_unix_ns) / 1e9:.2f}"
        pairs = ", ".join(
            f"{one.region}>{one.site} {one.before.rtt_ms}>{one.after.rtt_ms}"
            for one in entry.effects
        )
        print(f"    true {at:>7} s {entry.kind} {entry.subject}: {'/'.join(entry.causes)} {pairs}")
    for one in incidents:
        first, last = ((when - ledger.began_unix_ns) / 1e9 for when in one.window)
        cost = (
            ""
            if one.cost is None
            else f"{one.cost.low_ns / 1e6:.2f}..{one.cost.high_ns / 1e6:.2f} ms"
        )
        pairs = ", ".join(sorted({f"{each.region}>{each.site}" for each in one.series}))
        when = f"{first:.2f}..{last:.2f} s"
        print(f"    said {when} {one.cause} {cost} {one.blamed}: {one.reason} {pairs}")


def in_the_lab(seed: int, options: argparse.Namespace) -> Score:
    """Measure a week, or judge one that was kept, and print what came of it.

    A lab that was late is not the network of its file: the week is measured again, whatever was
    found in it, as often as `options.attempts` says.
    """
    kept = options.again or options.keep
    attempts = 1 if options.again else options.attempts
    while True:
        attempts -= 1
        folder = kept / f"week-{seed}" if kept else Path(tempfile.mkdtemp())
        if not options.again:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        began = time.monotonic()
        if not options.again:
            measure(seed, folder, options.seconds or week_seconds(seed))
        result, incidents, ledger = judged(folder)
        show(seed, result, incidents, ledger, all_=options.all)
        print(f"    {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
        if not kept:
            shutil.rmtree(folder)
        if ledger.error_p99_us <= QUIET_US or attempts <= 0:
            return result
        print("    the lab was late: measured again", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seconds", type=int, help="measure so long, not the whole week")
    parser.add_argument("--keep", type=Path, help="keep stores and ledgers there")
    parser.add_argument("--again", type=Path, help="judge what was kept there, measure nothing")
    parser.add_argument("--attempts", type=int, default=1, help="at weeks in which the lab is late")
    parser.add_argument("--only", type=int, nargs="+", help="these seeds")
    parser.add_argument("--all", action="store_true", help="print truth and incidents")
    parser.add_argument("--simulated", action="store_true", help="without the lab, in seconds")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.inside, options.first, options.seconds)
    total = Score()
    for seed in options.only or range(options.first, options.first + options.seeds):
        total.add(simulated(seed) if options.simulated else in_the_lab(seed, options))
    print(
        f"precision {total.precision:.3f}, recall {total.recall:.3f} of {total.injected}; "
        f"twice {len(total.twice)}, false {len(total.false)}, late {len(total.late)}, "
        f"wrong name {len(total.wrong_cause)}, wrong cost {len(total.wrong_cost)}; "
        f"of the lab's own stalls {len(total.stalled)}"
    )


if __name__ == "__main__":
    main()
