"""Writes what comes on standard input into a store: python -m pathbudget.agents.daemon.store_writer

Measurements as lines of JSON; an empty line ends a delivery, which is answered with ``done`` once
it is on the disk, or else with what is wrong. Ends with its input, so with its agent. A delivery
that was cut off is dropped: it was not acknowledged, so the spool has it still.
"""

import signal
import sys
from pathlib import Path

from pathbudget.agents.daemon.store_uplink import DONE
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.codec import decode_line
from pathbudget.probes.errors import PathbudgetError, RecordError
from pathbudget.probes.record import Measurement


def main() -> None:
    """Until the input ends."""
    # Ctrl-C and the stop of a service go to all processes, and the agent has results to deliver.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    store = Store(Path(sys.argv[1]))
    found: list[Measurement] = []
    for line in sys.stdin.buffer:
        if line != b"\n":
            found += _decoded(line)
            continue
        answer = DONE
        try:
            store.write(found)
        except PathbudgetError as error:
            answer = " ".join(str(error).split())
        found.clear()
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


def _decoded(line: bytes) -> list[Measurement]:
    """One that is no measurement of this version is passed over and said: it would stop everything
    behind it for ever.
    """
    try:
        return [decode_line(line)]
    except RecordError as error:
        sys.stderr.write(f"an entry of the spool cannot be read, left out: {error}\n")
        return []


if __name__ == "__main__":
    main()
