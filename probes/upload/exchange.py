"""One upload under way: a `carriers.AnswerListener` that keeps what it hears, within bounds."""

from collections.abc import Callable, Mapping

from pathbudget.probes.carriers import Moment
from pathbudget.probes.record import Failure, FailureKind, Note, Stage
from pathbudget.probes.upload.receipt import LONGEST_RECEIPT

_SUCCESS = range(200, 300)


class Exchange:
    """`over` is called once: when the answer is whole, or there will be none."""

    def __init__(self, over: "Callable[[Exchange], None]", has_left: Callable[[], None]) -> None:
        self._over = over
        self._has_left = has_left
        self._done = False
        self.first: Moment | None = None
        self.last: Moment | None = None
        self.acknowledged_at: Moment | None = None
        self.answered: Moment | None = None
        self.status: int | None = None
        self.answer = bytearray()
        self.notes: Mapping[str, Note] = {}
        self.failure: Failure | None = None

    @property
    def stage(self) -> Stage:
        """What is under way."""
        return Stage.SEND if self.last is None else Stage.WAIT

    def drop(self) -> None:
        """Hear no more."""
        self._done = True

    def left(self, first: Moment, last: Moment) -> None:
        """See `carriers.AnswerListener.left`."""
        self.first, self.last = first, last
        self._has_left()

    def acknowledged(self, moment: Moment) -> None:
        """See `carriers.AnswerListener.acknowledged`."""
        if self.acknowledged_at is None:
            self.acknowledged_at = moment

    def head(self, status: int, headers: tuple[tuple[str, str], ...], moment: Moment) -> None:
        """See `carriers.AnswerListener.head`."""
        del headers
        self.status, self.answered = status, moment

    def body(self, data: bytes, moment: Moment) -> None:
        """See `carriers.AnswerListener.body`."""
        del moment
        self.answer += data
        if len(self.answer) > LONGEST_RECEIPT:
            self.failed(Failure(FailureKind.PROTOCOL, Stage.PARSE, "an endless receipt"))

    def complete(self, moment: Moment, notes: Mapping[str, Note]) -> None:
        """See `carriers.AnswerListener.complete`."""
        del moment
        if self.status is not None and self.status not in _SUCCESS:
            self.failed(Failure(FailureKind.STATUS, Stage.WAIT, f"status {self.status}"))
            return
        self.notes = notes
        self._end()

    def failed(self, failure: Failure) -> None:
        """See `carriers.AnswerListener.failed`."""
        if not self._done:
            self.failure = failure
        self._end()

    def _end(self) -> None:
        if not self._done:
            self._done = True
            self._over(self)
