"""Hands messages over, each receiver in a thread of its own, so that none waits for another."""

import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, SimpleQueue
from typing import NamedTuple

from pathbudget.agents.alerts import alertmanager, mail, webhook
from pathbudget.agents.alerts.delivery import Answer, Receipt, Refusal
from pathbudget.agents.alerts.message import Message
from pathbudget.agents.alerts.outbox import Outbox
from pathbudget.agents.alerts.receivers import Alertmanager, EveryReceiver, Mail, Webhook


class _Result(NamedTuple):
    receiver: str
    message: Message | None
    """None: of the alerts of an Alertmanager."""
    answer: Answer | None
    """None: this receiver is done."""


def hand_over(receiver: Webhook | Mail, message: Message) -> Answer:
    """One message to one receiver."""
    if isinstance(receiver, Webhook):
        return webhook.send(receiver, message, time.time_ns())
    return mail.send(receiver, message)


class Couriers:
    """At most one delivery under way for each receiver. Answers are taken by `settle`."""

    def __init__(
        self,
        receivers: Iterable[EveryReceiver],
        outboxes: dict[str, Outbox],
        say: Callable[[str], None],
    ) -> None:
        self._receivers = {one.name: one for one in receivers}
        self.outboxes = {name: outboxes.get(name, Outbox()) for name in self._receivers}
        self._say = say
        self._busy: set[str] = set()
        self._results: SimpleQueue[_Result] = SimpleQueue()

    def dispatch(self, alerts: Mapping[str, list[alertmanager.Posted]], now_unix_ns: int) -> None:
        """Send what is due, and to each Alertmanager its alerts."""
        for name, receiver in self._receivers.items():
            if name in self._busy:
                continue
            outbox = self.outboxes[name]
            if isinstance(receiver, Alertmanager):
                posted = alerts.get(name, [])
                if posted and now_unix_ns >= outbox.next_unix_ns:
                    self._begin(name, functools.partial(self._post, receiver, posted))
            elif messages := outbox.due(now_unix_ns):
                self._begin(name, functools.partial(self._send, receiver, messages))

    def settle(self, now_unix_ns: int, wait_s: float = 0.0) -> None:
        """Take the answers that came; wait at most so long for those under way."""
        deadline = time.monotonic() + wait_s
        while True:
            left = max(0.0, deadline - time.monotonic()) if self._busy else 0.0
            try:
                result = self._results.get(timeout=left) if left else self._results.get_nowait()
            except Empty:
                return
            self._take(result, now_unix_ns)

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        self._busy.add(name)
        threading.Thread(target=work, name=f"to {name}", daemon=True).start()

    def _send(self, receiver: Webhook | Mail, messages: Iterable[Message]) -> None:
        try:
            for message in messages:
                answer = hand_over(receiver, message)
                self._results.put(_Result(receiver.name, message, answer))
                if isinstance(answer, Refusal) and not answer.final:
                    return
        finally:
            self._results.put(_Result(receiver.name, None, None))

    def _post(self, receiver: Alertmanager, posted: list[alertmanager.Posted]) -> None:
        try:
            self._results.put(_Result(receiver.name, None, alertmanager.send(receiver, posted)))
        finally:
            self._results.put(_Result(receiver.name, None, None))

    def _take(self, result: _Result, now_unix_ns: int) -> None:
        name, message, answer = result
        outbox = self.outboxes[name]
        if answer is None:
            self._busy.discard(name)
            return
        before = outbox.trouble
        if message is not None:
            outbox.answered(message, answer, now_unix_ns, lambda text: self._say(f"{name}: {text}"))
        elif isinstance(answer, Receipt):
            outbox.counts.sent += 1
            outbox.tries, outbox.next_unix_ns, outbox.trouble = 0, 0, ""
        else:
            outbox.failed(answer.why, now_unix_ns)
        if isinstance(answer, Refusal) and answer.why != before:
            self._say(f"{name}: {answer.why}")
        elif before and isinstance(answer, Receipt):
            self._say(f"{name}: it takes messages again")
