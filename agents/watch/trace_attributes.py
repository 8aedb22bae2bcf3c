"""What spans and resources say beside their times: semantic conventions of OpenTelemetry where
there are any, words of our own (`pathbudget.`) for the rest.
"""

import ipaddress
from collections.abc import Mapping, Sequence

from pathbudget.agents.version import software_name
from pathbudget.probes.record import Measurement, Metric, Sample, Transport

Value = str | int | float | bool
SCOPE = "pathbudget"
_TRANSPORTS = {Transport.TLS: "tcp", Transport.TCP: "tcp", Transport.QUIC: "quic"}
_SUMS_AS = {
    Metric.SETUP: "pathbudget.setup.duration_ns",
    Metric.FIRST_BYTE: "pathbudget.first_byte.duration_ns",
    Metric.CLIENT_COMPUTE: "pathbudget.client_compute.duration_ns",
}
_NOTES_AS = {
    "status": "http.response.status_code",
    "bytes": "http.response.body.size",
    "alpn": "pathbudget.alpn",
    "cipher": "tls.cipher",
    "rcode": "pathbudget.dns.rcode",
    "model": "gen_ai.response.model",
}
"""Notes of samples with a name of their own; the others are ``pathbudget.note.NAME``."""


def resource_attributes(measurement: Measurement, service: str) -> dict[str, Value]:
    """Of the agent that measured: the same for all of its measurements."""
    vantage = measurement.vantage
    _, _, version = (measurement.software or software_name()).rpartition(" ")
    found: dict[str, Value] = {
        "service.name": service,
        "service.version": version,
        "service.instance.id": vantage.name,
        "pathbudget.region": vantage.region,
    }
    told = {
        "host.name": vantage.host,
        "pathbudget.network": vantage.network,
        "pathbudget.asn": vantage.asn,
        "geo.country.iso_code": vantage.country,
        "geo.location.lat": vantage.latitude,
        "geo.location.lon": vantage.longitude,
    }
    return found | {name: value for name, value in told.items() if value not in (None, "")}


def measurement_attributes(measurement: Measurement) -> dict[str, Value]:
    """Of every shot of a measurement."""
    target, options = measurement.target, measurement.options
    found: dict[str, Value | None] = {
        "server.address": target.server_name or target.host,
        "server.port": target.port,
        "network.peer.address": _address(measurement.address),
        "network.type": measurement.family and str(measurement.family),
        "pathbudget.site": target.site,
        "pathbudget.target": target.name,
        "pathbudget.probe": measurement.probe,
        "pathbudget.campaign": measurement.campaign,
        "pathbudget.measurement.id": measurement.id,
    }
    if measurement.transport is not None:
        found["network.transport"] = _TRANSPORTS[measurement.transport]
    if measurement.probe == "http":
        found |= {
            "http.request.method": _text(options.get("method")),
            "url.scheme": _text(options.get("scheme")),
            "url.path": _text(options.get("path")),
            "network.protocol.name": "http",
            "network.protocol.version": _text(options.get("version")),
        }
    return {name: value for name, value in found.items() if value not in (None, "")}


def root_attributes(seq: int, samples: Sequence[Sample]) -> dict[str, Value]:
    """Of one shot: sums that are no stretch of time, and what it was like."""
    found: dict[str, Value] = {"pathbudget.seq": seq}
    for sample in samples:
        if sample.metric in _SUMS_AS and sample.value_ns is not None:
            found[_SUMS_AS[Metric(sample.metric)]] = sample.value_ns
        if sample.metric in (Metric.FIRST_BYTE, Metric.SETUP):
            found |= _notes(sample)
        if sample.mode is not None:
            found["pathbudget.connection_mode"] = str(sample.mode)
        if sample.lateness_ns is not None and sample.part is None:
            found.setdefault("pathbudget.send_lateness_ns", sample.lateness_ns)
        if sample.failure is not None:
            found["error.type"] = str(sample.failure.kind)
    return found


def sample_attributes(sample: Sample, variation: Sample | None) -> dict[str, Value]:
    """Of one step; `variation` is the delivery variation of a chunk."""
    found: dict[str, Value] = {"pathbudget.clock_source": str(sample.clock_source)}
    if sample.flags:
        found["pathbudget.flags"] = ",".join(sample.flags)
    if sample.part is not None:
        found["pathbudget.part"] = sample.part
    if sample.responder:
        found["pathbudget.responder"] = sample.responder
    if variation is not None and variation.value_ns is not None:
        found["pathbudget.delivery_variation_ns"] = variation.value_ns
    if sample.failure is not None:
        found["error.type"] = str(sample.failure.kind)
        found["pathbudget.stage"] = str(sample.failure.stage)
    return found | _notes(sample)


def _notes(sample: Sample) -> dict[str, Value]:
    notes: Mapping[str, Value] = sample.notes or {}
    return {_NOTES_AS.get(name, f"pathbudget.note.{name}"): value for name, value in notes.items()}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _address(text: str) -> str:
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    return text
