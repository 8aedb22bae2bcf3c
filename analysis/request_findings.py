"""What a person must know of the requests before using the numbers."""

from collections.abc import Callable, Iterable, Sequence

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.line_place import carriage_words
from pathbudget.analysis.request_results import SetupSummary, UploadSummary
from pathbudget.analysis.results import Carrier, Finding, Mode
from pathbudget.analysis.stream_results import Bounded

CARRIER_NAMES = {"tls": "TLS", "quic": "QUIC", "tcp": "TCP"}

Place = tuple[str, str, str, str]
"""Region, site, target, transport."""


def setup_findings(setups: Sequence[SetupSummary]) -> list[Finding]:
    """Modes that the server or the client refuses, and round trips beyond the usual ones."""
    by_place: dict[Place, list[SetupSummary]] = {}
    for one in setups:
        place = (one.region, one.site, one.target, one.transport)
        by_place.setdefault(place, []).append(one)
    found: list[Finding] = []
    for place, alike in by_place.items():
        for word in (_refused, _rejected, _unavailable, *_EXTRA):
            found += _finding(place, word, alike)
    return found


Told = tuple[FindingKind, str]


def _finding(
    place: Place,
    word: Callable[[Place, list[SetupSummary]], Told | None],
    alike: list[SetupSummary],
) -> list[Finding]:
    told = word(place, alike)
    if told is None:
        return []
    region, site, _, _ = place
    return [Finding(kind=told[0], region=region, site=site, text=told[1])]


def _refused(place: Place, alike: list[SetupSummary]) -> Told | None:
    n = sum(one.other_mode for one in alike if one.mode == Mode.RESUMED)
    if not n:
        return None
    return FindingKind.NOT_RESUMED, (
        f"{_target(place)} made a full handshake {times(n)} although a ticket was offered: these "
        "are in no resumed line."
    )


def _rejected(place: Place, alike: list[SetupSummary]) -> Told | None:
    early = [one for one in alike if one.mode == Mode.EARLY_DATA]
    n, of = sum(one.other_mode for one in early), sum(one.asked for one in early)
    if not n:
        return None
    return FindingKind.EARLY_DATA_REJECTED, (
        f"{_target(place)} did not take the early data of {n} of {of} connections"
        f"{_reasons(early)}: those requests waited for the handshake, and are in no early-data "
        "line."
    )


def _unavailable(place: Place, alike: list[SetupSummary]) -> Told | None:
    asked = [one for one in alike if one.unavailable]
    if not asked:
        return None
    modes = " and ".join(sorted({one.mode.replace("_", " ") for one in asked}))
    return FindingKind.MODE_UNAVAILABLE, (
        f"{modes} to {_target(place)} could not be tried{_reasons(asked)}: it has no lines, and "
        "nothing counts as lost."
    )


def _reasons(setups: Iterable[SetupSummary]) -> str:
    """The commonest reason, in brackets."""
    reasons: dict[str, int] = {}
    for one in setups:
        for reason, n in one.reasons.items():
            reasons[reason] = reasons.get(reason, 0) + n
    return f" ({max(reasons, key=lambda word: reasons[word])})" if reasons else ""


def _extra(
    kind: FindingKind, count: Callable[[SetupSummary], int], words: Callable[[SetupSummary], str]
) -> Callable[[Place, list[SetupSummary]], Told | None]:
    """A finding on set-ups that took one more round trip."""

    def told(place: Place, alike: list[SetupSummary]) -> Told | None:
        n, of = sum(map(count, alike)), sum(one.n - one.losses for one in alike)
        if not n:
            return None
        worst = max(alike, key=count)
        return kind, f"{n} of {of} set-ups to {_target(place)} took one more round trip: " + words(
            worst
        )

    return told


def _hello_retry(one: SetupSummary) -> str:
    groups = ", ".join(one.groups) or "another group"
    return (
        "the server asked for another ClientHello (RFC 8446, 4.1.4). Offering what it takes first "
        f"({groups}), or letting it take what clients offer, saves it."
    )


def _second_flight(one: SetupSummary) -> str:
    size = one.flight_bytes or one.certificate_bytes
    bytes_words = f" of {size:,} bytes" if size else ""
    return (
        f"its first flight{bytes_words} does not fit the initial window (RFC 6928). A shorter "
        "certificate chain saves it."
    )


def _retry(_: SetupSummary) -> str:
    return "the server made the client prove its address (Retry; RFC 9000, 8.1)."


def _versions(_: SetupSummary) -> str:
    return "the server does not speak the version of QUIC that was offered (RFC 9000, 6)."


_EXTRA = (
    _extra(FindingKind.HELLO_RETRY, lambda one: one.hello_retries, _hello_retry),
    _extra(FindingKind.CERTIFICATE_ROUND_TRIP, lambda one: one.second_flights, _second_flight),
    _extra(FindingKind.RETRY, lambda one: one.retries, _retry),
    _extra(FindingKind.VERSION_NEGOTIATION, lambda one: one.version_negotiations, _versions),
)


def upload_findings(uploads: Iterable[UploadSummary]) -> list[Finding]:
    """Sizes of which nothing arrived, and uploads that waited for a window to open."""
    found: list[Finding] = []
    for one in uploads:
        words = carriage_words((Carrier(one.transport), Mode(one.mode)))
        what = f"{one.bytes:,} bytes to {one.target} on {words} connections"
        if one.losses == one.n:
            why = " (answered with an error status)" if one.refused_status else ""
            text = (
                f"not one of {one.n} uploads of {what} arrived{why}: lines of this size use the "
                "model of slow start."
            )
            found.append(_upload(FindingKind.UPLOAD_FAILED, one, text))
        if one.flow_stalls:
            text = (
                f"{one.flow_stalls} of {one.n} uploads of {what} waited for the receiver's "
                f"flow-control window: a larger one saves that.{_model_words(one.model_error_ms)}"
            )
            found.append(_upload(FindingKind.FLOW_STALL, one, text))
    return found


def _model_words(error: Bounded | None) -> str:
    if error is None or error.value_ms is None:
        return ""
    return f" The median upload took {error.value_ms:+.1f} ms against the model of slow start."


def _upload(kind: FindingKind, one: UploadSummary, text: str) -> Finding:
    return Finding(kind=kind, region=one.region, site=one.site, text=text)


def _target(place: Place) -> str:
    _, _, target, transport = place
    return (
        target if transport == "tls" else f"{target} over {CARRIER_NAMES.get(transport, transport)}"
    )


def times(n: int) -> str:
    """``once``, ``3 times``."""
    return "once" if n == 1 else f"{n} times"
