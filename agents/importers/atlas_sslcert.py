"""``sslcert`` results as measurements of ``tls``: resolve, connect, first flight of TLS.

The probe connects, sends a ClientHello, reads until it has the certificate, and closes. It counts
``ttc`` (time to connect) and ``rt`` (response time) both from the moment before it connects, after
the name was resolved (``ttr``); so the answer to the ClientHello took ``rt - ttc``. That is the
server's first flight, TLS 1.2 or older: the probe never ends the handshake, hence no `setup`.

Certificates are not stored.
"""

from pathbudget.agents.importers.atlas_failures import BAD_NUMBER, NO_ADDRESS, failure_of
from pathbudget.agents.importers.atlas_labels import Labels
from pathbudget.agents.importers.atlas_wire import (
    NO_RTT,
    SECOND,
    Alert,
    SslCert,
    address_of,
    nanoseconds,
)
from pathbudget.agents.importers.import_report import ImportReport
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    Sample,
    Stage,
)

PROBE = "tls"
Phase = tuple[Metric, int | Failure]


def read_sslcert(result: SslCert, labels: Labels, report: ImportReport) -> Measurement | None:
    """The measurement of one result; None when it has nothing to import.

    All samples have one `seq`: they are the phases of one handshake.
    """
    phases = _phases(result)
    if not phases:
        report.left_out["sslcert without times (firmware before 4540)"] += 1
        return None
    samples = tuple(_sample(result, metric, outcome) for metric, outcome in phases)
    report.count("sslcert", samples)
    return labels.measurement(result, PROBE, samples, port=_port(result))


def _phases(result: SslCert) -> list[Phase]:
    """What is known of each step, up to the one that failed."""
    phases: list[Phase] = []
    if result.ttr != NO_RTT and not result.dnserr:
        phases.append((Metric.RESOLVE, _time(result.ttr)))
    if result.ttc != NO_RTT:
        phases.append((Metric.CONNECT, _time(result.ttc)))
    if failure := _failure(result):
        metric = {Stage.RESOLVE: Metric.RESOLVE, Stage.HANDSHAKE: Metric.TLS_HANDSHAKE}
        phases.append((metric.get(failure.stage, Metric.CONNECT), failure))
    elif result.ttc != NO_RTT and result.rt != NO_RTT:
        phases.append((Metric.TLS_HANDSHAKE, _answer(result.ttc, result.rt)))
    elif not phases and result.cert is None and not address_of(result):
        phases.append((Metric.RESOLVE, NO_ADDRESS))
    return phases


def _time(milliseconds: float) -> int | Failure:
    value = nanoseconds(milliseconds)
    return BAD_NUMBER if value is None else value


def _answer(connected: float, answered: float) -> int | Failure:
    """ns from ClientHello to certificate, of two times that are counted from the SYN."""
    start, end = nanoseconds(connected), nanoseconds(answered)
    return BAD_NUMBER if start is None or end is None or end < start else end - start


def _failure(result: SslCert) -> Failure | None:
    if result.dnserr:
        failure = failure_of(result.dnserr, Stage.RESOLVE)
        return Failure(failure.kind, Stage.RESOLVE, failure.detail)
    if message := result.sockerr or result.err or result.error:
        connected = result.ttc != NO_RTT
        return failure_of(message, Stage.HANDSHAKE if connected else Stage.CONNECT)
    if result.alert is not None:
        return Failure(FailureKind.PROTOCOL, Stage.HANDSHAKE, _alert(result.alert))
    return None


def _alert(alert: Alert) -> str:
    number = alert.decription if alert.description is None else alert.description
    return f"TLS alert {number}, level {alert.level}"


def _sample(result: SslCert, metric: Metric, outcome: int | Failure) -> Sample:
    return Sample(
        seq=0,
        metric=metric,
        sent_unix_ns=result.timestamp * SECOND,
        value_ns=outcome if isinstance(outcome, int) else None,
        failure=outcome if isinstance(outcome, Failure) else None,
        clock_source=ClockSource.FOREIGN,
        mode=ConnectionMode.COLD if metric is Metric.TLS_HANDSHAKE else None,
    )


def _port(result: SslCert) -> int | None:
    """Old firmware gives the name of the service."""
    port = result.dst_port
    if isinstance(port, str):
        port = {"https": 443}.get(port) or (int(port) if port.isascii() and port.isdigit() else 0)
    return port if port is not None and 0 < port < 65536 else None
