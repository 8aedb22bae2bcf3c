"""What a user may choose of uploads, and the same checked."""

from dataclasses import dataclass

from pathbudget.probes.contract import Cost, Options, OptionSpec
from pathbudget.probes.http.settings import HTTP_OPTIONS
from pathbudget.probes.record import ConnectionMode
from pathbudget.probes.reflector_http import UPLOAD_PATH

MOST_BYTES = 16 << 20
MOST_TOKENS = 2_000_000
BYTES_PER_TOKEN = 4.0
KEPT_OPEN = (ConnectionMode.WARM, ConnectionMode.IDLE)
"""Modes that need a connection of before."""
_PACKET_BYTES, _OVERHEAD = 1_200, 60
_SETUP = Cost(packets=40, bytes=16_000)

OPTIONS = {
    "tokens": OptionSpec(int, 1_000, "length of the prompt", minimum=1, maximum=MOST_TOKENS),
    "bytes_per_token": OptionSpec(
        float, BYTES_PER_TOKEN, "bytes of a token in the body", minimum=0.1, maximum=64
    ),
    "bytes": OptionSpec(
        int, 0, "length of the body, instead of tokens", minimum=0, maximum=MOST_BYTES
    ),
    "mode": OptionSpec(
        str,
        "cold",
        "state of the connection when the upload begins",
        choices=tuple(mode.value for mode in ConnectionMode),
    ),
    "idle": OptionSpec(
        float, 1.5, "seconds a connection lies idle in mode idle", minimum=0.2, maximum=3_600
    ),
    "congestion": OptionSpec(
        str, "", "congestion control of our side, as in cubic, bbr; empty: this host's own"
    ),
    "path": OptionSpec(str, UPLOAD_PATH, "path of the sink"),
    **HTTP_OPTIONS,
}


@dataclass(frozen=True, slots=True)
class UploadSettings:
    """What is sent, and over what."""

    bytes: int
    mode: ConnectionMode
    idle_ns: int
    congestion: str
    path: str
    scheme: str
    verify: bool


def upload_bytes(options: Options) -> int:
    """Length of the body that these options ask for, at least 1 and at most `MOST_BYTES`."""
    stated = int(options.get("bytes") or 0)
    if stated:
        return min(stated, MOST_BYTES)
    tokens = int(options.get("tokens") or 1_000)
    each = float(options.get("bytes_per_token") or BYTES_PER_TOKEN)
    return max(1, min(round(tokens * each), MOST_BYTES))


def upload_settings(options: Options) -> UploadSettings:
    """Read the options of the probe."""
    return UploadSettings(
        bytes=upload_bytes(options),
        mode=ConnectionMode(str(options.get("mode") or "cold")),
        idle_ns=round(float(options.get("idle") or 1.5) * 1e9),
        congestion=str(options.get("congestion") or ""),
        path=str(options.get("path") or UPLOAD_PATH),
        scheme=str(options.get("scheme") or "https"),
        verify=bool(options.get("verify", True)),
    )


def upload_cost(options: Options) -> Cost:
    """Set-up, the body with its headers, one acknowledgement for two packets; twice where warm."""
    times = 2 if options.get("mode") == ConnectionMode.WARM else 1
    size = upload_bytes(options)
    packets = -(-size // _PACKET_BYTES) + 2
    return Cost(
        packets=_SETUP.packets + times * (packets + packets // 2 + 4),
        bytes=_SETUP.bytes + times * (size + packets * _OVERHEAD * 3 // 2),
    )
