"""What an endpoint costs an agent: `python benchmarks/watch_cost.py`.

Counting a sample; a scrape of 500 series; and how late a loop wakes that wants to every 5 ms, alone
and while somebody scrapes once a second: with our text, and with that of Prometheus's library.
"""

import asyncio
import gzip
import sys
import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import HistogramMetricFamily, Metric

from pathbudget.agents.watch.book import MeterBook, SeriesLabels
from pathbudget.agents.watch.buckets import BOUNDS_S
from pathbudget.agents.watch.endpoint import Listening, MetricsEndpoint
from pathbudget.agents.watch.text import pieces
from pathbudget.probes.host_histogram import DelayHistogram
from pathbudget.probes.record import Measurement, Sample, Target, Vantage

SERIES, SAMPLES, PERIOD_S, LASTS_S = 500, 200_000, 0.005, 15.0


def filled() -> MeterBook:
    book = MeterBook()
    for number in range(SERIES):
        samples = tuple(
            Sample(seq=n, metric="rtt", sent_unix_ns=1_790_000_000 * 10**9, value_ns=10_000 * n * n)
            for n in range(100)
        )
        book.add(
            Measurement(
                id=f"m{number}", vantage=Vantage("frankfurt-1", "frankfurt"),
                target=Target("edge", "192.0.2.1", f"site-{number}"), probe="icmp",
                started_unix_ns=1, samples=samples,
            ),
            0,
        )  # fmt: skip
    return book


class OfTheLibrary:
    """The same distributions, written by prometheus-client."""

    def __init__(self, book: MeterBook) -> None:
        self._book = book

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily("pathbudget_rtt_seconds", "RTT", labels=SeriesLabels._fields)
        for page in self._book.pages():
            for one in page.delays.values():
                total, buckets = 0, []
                for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), one.counts, strict=True):
                    total += count
                    buckets.append((bound, float(total)))
                family.add_metric(list(page.labels), buckets, one.sum_ns / 1e9)
        yield family


async def lateness(text: Callable[[], str] | None) -> DelayHistogram:
    """Of a loop that wakes every `PERIOD_S`, while `text` is asked for once a second."""
    late, loop = DelayHistogram(), asyncio.get_running_loop()
    with MetricsEndpoint(Listening("127.0.0.1", 0), text or str) as endpoint:
        url = f"http://{endpoint.where}/metrics"

        async def scrape() -> None:
            words = f"urllib.request.urlopen('{url}').read(); time.sleep(1.05)"
            command = f"import time, urllib.request\nwhile True: {words}"
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", command)
            try:
                await process.wait()
            finally:
                process.kill()
                await process.wait()

        task = asyncio.create_task(scrape()) if text else None
        due = loop.time()
        until = due + LASTS_S
        while due < until:
            due += PERIOD_S
            await asyncio.sleep(due - loop.time())
            late.note(max(0, round((loop.time() - due) * 1e9)))
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    return late


def main() -> None:
    book = filled()
    page = book.pages()[0]
    one = Sample(seq=1, metric="rtt", sent_unix_ns=5, value_ns=20_000_000, lateness_ns=3_000)
    began = time.process_time()
    for _ in range(SAMPLES):
        book.note(page, one)
    print(f"counting a sample: {(time.process_time() - began) / SAMPLES * 1e6:.1f} us")
    registry = CollectorRegistry()
    registry.register(OfTheLibrary(book))  # type: ignore[arg-type]
    ours, theirs = lambda: "".join(pieces(book)), lambda: generate_latest(registry).decode()
    for name, text in (("ours", ours), ("library", theirs)):
        began = time.process_time()
        body = text().encode()
        spent = time.process_time() - began
        packed = len(gzip.compress(body, 1)) >> 10
        print(f"text, {name}: {spent * 1e3:.0f} ms, {len(body) / 1e6:.1f} MB, packed {packed} kB")
    for name, asked in (("no scrapes", None), ("ours", ours), ("library", theirs)):
        late = asyncio.run(lateness(asked))
        told = [late.quantile(share) or 0 for share in (0.5, 0.99, 0.999, 1)]
        print(f"late, {name}: p50 p99 p99.9 max", *(f"{ns / 1e6:.2f}" for ns in told), "ms")


if __name__ == "__main__":
    main()
