"""Puts a collector together and runs it: signals, the service manager, the status file."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pathbudget.agents.bus.link import Link
from pathbudget.agents.bus.login import Login
from pathbudget.agents.collector.collecting import Collector
from pathbudget.agents.collector.quarantine import FOLDER
from pathbudget.agents.collector.status import STATUS, write_status
from pathbudget.agents.daemon.service import Service
from pathbudget.agents.store.parquet import Store

if TYPE_CHECKING:
    from pathbudget.agents.watch.collector import CollectorWatch

LOOK_EVERY_S = 2.0
ALIVE_SHARE = 3.0


def run_collector(
    login: Login,
    store: Path,
    say: Callable[[str], None],
    watch: "CollectorWatch | None" = None,
) -> None:
    """Until SIGTERM or Ctrl-C. Raises StoreError where the store cannot be written, and WatchError
    where the endpoint of `watch` cannot listen.
    """
    target = Store(store)
    target.check_writable()
    with watch or contextlib.nullcontext():
        asyncio.run(_run(login, target, say, watch))


async def _run(
    login: Login, store: Store, say: Callable[[str], None], watch: "CollectorWatch | None"
) -> None:
    link = Link(login, say)
    if watch is not None:
        link.greet(watch.greet)
    stored = None if watch is None else watch.stored
    collector = Collector(link, store, store.path / FOLDER, say, stored)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, collector.stop)
    service = Service()
    tell = _tell(collector, store.path / STATUS, watch)
    beside = [
        asyncio.create_task(one)
        for one in (link.run(), collector.backlog.run(), tell, _live(service))
    ]
    service.ready("collecting")
    say(f"results go to {store.path}")
    try:
        await collector.run()
    finally:
        service.stopping()
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await link.close()
        write_status(store.path / STATUS, collector.status())


async def _tell(collector: Collector, path: Path, watch: "CollectorWatch | None") -> None:
    while True:
        status = collector.status()
        write_status(path, status)
        if watch is not None:
            watch.tell(status)
        await asyncio.sleep(LOOK_EVERY_S)


async def _live(service: Service) -> None:
    period = service.watchdog_s
    while period is not None:
        service.alive()
        await asyncio.sleep(period / ALIVE_SHARE)
