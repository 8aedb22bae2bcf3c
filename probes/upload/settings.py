"""What a user may choose of uploads, and the same checked."""

from dataclasses import dataclass
from pathlib import Path

from pathbudget.probes.contract import Cost, Options, OptionSpec
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.http.requests import wrong_path
from pathbudget.probes.http.settings import HTTP_3, HTTP_OPTIONS, carrying_faults
from pathbudget.probes.record import ConnectionMode
from pathbudget.probes.reflector_http import UPLOAD_PATH

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
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
    """Read the options of the probe. Raises ConfigError with every fault in what is its own."""
    faults = _own_faults(options)
    if faults:
        raise ConfigError(faults)
    return UploadSettings(
        bytes=upload_bytes(options),
        mode=ConnectionMode(str(options.get("mode") or "cold")),
        idle_ns=round(float(options.get("idle") or 1.5) * 1e9),
        congestion=str(options.get("congestion") or ""),
        path=str(options.get("path") or UPLOAD_PATH),
        scheme=str(options.get("scheme") or "https"),
        verify=bool(options.get("verify", True)),
    )


def check(options: Options) -> list[Fault]:
    """Every fault in the options; see `contract.ProbeSpec.check`."""
    mode = ConnectionMode(str(options.get("mode") or "cold"))
    return [*_own_faults(options), *carrying_faults(options, mode, "upload")]


def _own_faults(options: Options) -> list[Fault]:
    faults: list[Fault] = []
    problem = wrong_path(str(options.get("path") or UPLOAD_PATH))
    if problem:
        expected = "one that begins with / and has no spaces"
        faults.append(Fault("upload", "path", problem, expected))
    asked = float(options.get("tokens") or 0) * float(options.get("bytes_per_token") or 0)
    if not options.get("bytes") and asked > MOST_BYTES:
        problem = f"{asked:.0f} bytes with bytes_per_token = {options['bytes_per_token']}"
        faults.append(Fault("upload", "tokens", problem, f"at most {MOST_BYTES} bytes in all"))
    congestion = str(options.get("congestion") or "")
    known = available_congestion_controls()
    if congestion and options.get("version") == HTTP_3:
        problem = "congestion with version 3, which has its own"
        faults.append(Fault("upload", "congestion", problem, "version 1.1 or 2"))
    elif congestion and known and congestion not in known:
        problem = f"{congestion!r} is not in this kernel"
        expected = f"one of {', '.join(known)}, or another module loaded (modprobe tcp_...)"
        faults.append(Fault("upload", "congestion", problem, expected))
    return faults


def available_congestion_controls() -> tuple[str, ...]:
    """By the kernel's names; empty where it does not say."""
    try:
        return tuple(AVAILABLE.read_text("ascii").split())
    except (OSError, ValueError):
        return ()


def upload_cost(options: Options) -> Cost:
    """Set-up, the body with its headers, one acknowledgement for two packets; twice where warm."""
    times = 2 if options.get("mode") == ConnectionMode.WARM else 1
    size = upload_bytes(options)
    packets = -(-size // _PACKET_BYTES) + 2
    return Cost(
        packets=_SETUP.packets + times * (packets + packets // 2 + 4),
        bytes=_SETUP.bytes + times * (size + packets * _OVERHEAD * 3 // 2),
    )
