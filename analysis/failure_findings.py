"""Probes that all failed for one reason: what that reason is, and what to do about it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.name_lookups import OVER
from pathbudget.analysis.path_choice import CERTIFICATE, FAMILY_WORDS
from pathbudget.analysis.results import Carrier, Finding
from pathbudget.analysis.series import NOT_OF_THE_PATH, Series
from pathbudget.probes.record import FailureKind, Metric, Stage

TRANSPORT_WORDS = {"tls": "TLS", "quic": "QUIC", "tcp": "TCP"}

TRUST_IT = "set ca_file to the authority that signed it, or verify = false to measure without"
"""What to do about a certificate, in the words of a campaign file."""

SILENT = (
    f"{FailureKind.TIMEOUT}/{Stage.HANDSHAKE}",
    *(f"{FailureKind.TIMEOUT}/{Stage.CONNECT}", f"{FailureKind.REFUSED}/{Stage.CONNECT}"),
    *(f"{FailureKind.REFUSED}/{Stage.HANDSHAKE}", f"{FailureKind.UNREACHABLE}/{Stage.CONNECT}"),
    f"{FailureKind.UNREACHABLE}/{Stage.HANDSHAKE}",
)
"""Failures where no server spoke, unless the words of the failure say otherwise."""
HEARD = ("datagram came", "datagrams came")
"""How the words of a handshake that got stuck end, where something had come by then."""

ANSWERS = (Metric.FIRST_BYTE, Metric.TTFB, Metric.WAIT, Metric.TTFT)
"""Of requests whose status counts."""
REQUESTS = {"http": "HTTP", "token_stream": "stream", "completion": "completion"}

Part = tuple[str | bool | None, ...]


def failure_findings(series: Sequence[Series]) -> list[Finding]:
    """Everything that failed throughout on idle paths, told by its cause."""
    idle = [one for one in series if not one.key.loaded]
    return [*_untrusted(idle), *_blocked(idle), *_statuses(idle), *_look_ups(idle)]


def _grouped(series: Iterable[Series], key: Callable[[Series], Part]) -> dict[Part, list[Series]]:
    found: dict[Part, list[Series]] = {}
    for one in series:
        found.setdefault(key(one), []).append(one)
    return found


def _n(series: Iterable[Series]) -> int:
    return sum(one.track.n for one in series)


def _said(series: Iterable[Series], kind: str) -> str:
    """The commonest words of one kind of failure, in brackets."""
    words: Counter[str] = Counter()
    for one in series:
        for (failure, detail), n in one.details.items():
            if failure.startswith(kind) and detail:
                words[detail] += n
    return f" ({words.most_common(1)[0][0]})" if words else ""


def _finding(kind: FindingKind, series: Sequence[Series], text: str) -> Finding:
    key = series[0].key
    return Finding(kind=kind, region=key.region, site=key.site, text=text)


def _over(series: Sequence[Series]) -> str:
    """``alpha-edge over QUIC and IPv6``."""
    key = series[0].key
    words = [TRANSPORT_WORDS.get(key.transport or "", ""), FAMILY_WORDS.get(key.family or "", "")]
    over = " and ".join(word for word in words if word)
    return f"{key.target} over {over}" if over else key.target


def _untrusted(series: Iterable[Series]) -> list[Finding]:
    """Pairs whose handshakes mostly ended because we did not trust the certificate."""
    setups = (one for one in series if one.key.metric == Metric.SETUP)
    found: list[Finding] = []
    for alike in _grouped(
        setups, lambda one: (*one.key[:3], one.key.transport, one.key.family)
    ).values():
        refused, n = sum(one.failures[CERTIFICATE] for one in alike), _n(alike)
        if 2 * refused > n:
            text = (
                f"the certificate of {_over(alike)} was not trusted in {refused} of {n} "
                f"handshakes{_said(alike, CERTIFICATE)}: {TRUST_IT}."
            )
            found.append(_finding(FindingKind.CERTIFICATE_NOT_TRUSTED, alike, text))
    return found


def _blocked(series: Iterable[Series]) -> list[Finding]:
    """Targets that answer over TCP and of which nothing ever came over QUIC."""
    setups = [
        one
        for one in series
        if one.key.metric == Metric.SETUP and one.key.probe not in NOT_OF_THE_PATH
    ]
    found: list[Finding] = []
    for alike in _grouped(setups, lambda one: (*one.key[:3], one.key.family)).values():
        tried = [one for one in alike if one.key.transport == Carrier.QUIC]
        over_tcp = [one for one in alike if one.key.transport == Carrier.TLS]
        n = _n(tried)
        if n and sum(map(_silent, tried)) == n and any(map(_reached, over_tcp)):
            family = FAMILY_WORDS.get(tried[0].key.family or "", "IP")
            text = (
                f"{tried[0].key.target} answered none of {n} QUIC connections over {family}, "
                "and does answer over TCP: UDP is filtered on the way, or no QUIC server listens."
            )
            found.append(_finding(FindingKind.QUIC_BLOCKED, tried, text))
    return found


def _silent(one: Series) -> int:
    """How many failed without a word from the other side."""
    heard = sum(n for (_, detail), n in one.details.items() if detail.endswith(HEARD))
    return sum(one.failures[kind] for kind in SILENT) - heard


def _reached(one: Series) -> bool:
    """Whether a server spoke: a certificate that is not trusted came from one."""
    return one.track.losses < one.track.n or bool(one.failures[CERTIFICATE])


def _statuses(series: Iterable[Series]) -> list[Finding]:
    """Requests that were all answered with a status that is none of success."""
    requests = (one for one in series if one.key.probe in REQUESTS and one.key.metric in ANSWERS)
    status = f"{FailureKind.STATUS}/{Stage.WAIT}"
    failed: dict[Part, list[Series]] = {}
    for alike in _grouped(requests, lambda one: (*one.key[:5], *one.key[6:])).values():
        worst = max(alike, key=lambda one: one.failures[status])
        answered = any(one.track.losses < one.track.n for one in alike)
        if not answered and worst.failures[status] == worst.track.n > 0:
            failed.setdefault((*worst.key[:3], worst.key.probe), []).append(worst)
    return [
        _finding(
            FindingKind.STATUS_UNEXPECTED,
            alike,
            f"every one of {_n(alike)} {REQUESTS[alike[0].key.probe]} requests to "
            f"{alike[0].key.target} had an unexpected status{_said(alike, status)}: check the path "
            "and the credentials; nothing was measured of the answers.",
        )
        for alike in failed.values()
    ]


def _look_ups(series: Iterable[Series]) -> list[Finding]:
    """Questions of one kind over one transport of which not one was answered."""
    asked = (one for one in series if one.key.metric in (Metric.DNS_HIT, Metric.DNS_MISS))
    found: list[Finding] = []
    for alike in _grouped(asked, lambda one: (*one.key[:3], one.key.variant)).values():
        n = _n(alike)
        if n and sum(one.track.losses for one in alike) == n:
            over = OVER.get(alike[0].key.variant, "UDP")
            text = (
                f"every one of {n} DNS questions to {alike[0].key.target} over {over} failed"
                f"{_commonest(alike)}."
            )
            found.append(_finding(FindingKind.LOOK_UPS_FAILED, alike, text))
    return found


def _commonest(series: Sequence[Series]) -> str:
    """The commonest failure, by its words or else by its kind."""
    kinds: Counter[str] = Counter()
    for one in series:
        kinds.update(one.failures)
    kind = kinds.most_common(1)[0][0] if kinds else ""
    return _said(series, kind) or (f" ({kind.split('/')[0].replace('_', ' ')})" if kind else "")
