"""The test mode that sends: one marked message to each receiver, and what came back."""

from collections.abc import Iterable, Iterator

from pathbudget.agents.alerts import alertmanager
from pathbudget.agents.alerts.couriers import hand_over
from pathbudget.agents.alerts.delivery import Answer
from pathbudget.agents.alerts.message import VERSION, Alert, Message
from pathbudget.agents.alerts.receivers import Alertmanager, EveryReceiver
from pathbudget.analysis.alerts.model import AlertKind, News, Severity


def tried(
    receivers: Iterable[EveryReceiver], now_unix_ns: int
) -> Iterator[tuple[EveryReceiver, Answer]]:
    """One after the other."""
    message = trial(now_unix_ns)
    for receiver in receivers:
        if isinstance(receiver, Alertmanager):
            yield receiver, alertmanager.send(receiver, alertmanager.trial(message))
        else:
            yield receiver, hand_over(receiver, message)


def trial(now_unix_ns: int) -> Message:
    """A message that says that it is none."""
    alert = Alert(
        key="test",
        status=News.FIRING,
        severity=Severity.TICKET,
        summary="this is a test of the way here: nothing happened.",
        labels={"test": "true"},
        numbers={},
        began_unix_ns=now_unix_ns,
    )
    return Message(
        version=VERSION,
        id=f"test-{now_unix_ns}",
        test=True,
        rule="test",
        kind=AlertKind.BLIND,
        at_unix_ns=now_unix_ns,
        alerts=(alert,),
    )
