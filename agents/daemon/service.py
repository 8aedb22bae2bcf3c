"""What systemd is told (sd_notify(3)): ready, reloading, stopping, alive, and a line of status."""

import contextlib
import os
import socket
import time

NOTIFY, WATCHDOG_US, WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"


class Service:
    """Says nothing where no service manager listens."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        values = dict(os.environ) if environment is None else environment
        self._address = values.get(NOTIFY, "")
        mine = values.get(WATCHDOG_PID, str(os.getpid())) == str(os.getpid())
        period = values.get(WATCHDOG_US, "") if mine else ""
        self.watchdog_s = int(period) / 1e6 if period.isdecimal() else None
        """Within which `alive` must be said again and again; None: nobody waits for it."""

    def ready(self, status: str) -> None:
        """Started, or done with a reload."""
        self._say("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """A reload has begun; `ready` says that it is done."""
        self._say("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def status(self, text: str) -> None:
        """One line for ``systemctl status``."""
        self._say(f"STATUS={text}")

    def alive(self) -> None:
        """The event loop still turns."""
        self._say("WATCHDOG=1")

    def stopping(self) -> None:
        """The end has begun."""
        self._say("STOPPING=1")

    def _say(self, *lines: str) -> None:
        if not self._address:
            return
        # "@" stands for the zero byte of an abstract name
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        message = "\n".join(line.replace("\n", " ") for line in lines).encode()
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
            contextlib.suppress(OSError),  # a manager that does not listen stops no agent
        ):
            sender.sendto(message, socket.MSG_DONTWAIT, address)
