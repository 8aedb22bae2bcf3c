"""The stamp probe: round trip and both directions against a STAMP or TWAMP-Light reflector.

One UDP socket per address family and flow serves all targets. Read `sender_session.py` for what
counts as an answer, `measured.py` for the numbers.
"""

from pathbudget.probes.channels import PacketOptions
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.clock_survey import ClockSurvey
from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
)
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.families import FamiliesProbe
from pathbudget.probes.option_files import noting
from pathbudget.probes.option_words import source_faults
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.stamp.authentication import Key, read_keys
from pathbudget.probes.stamp.family import AskClock, StampFamily
from pathbudget.probes.stamp.sender_session import SenderSession
from pathbudget.probes.stamp.trailer import Extensions, choose_extensions
from pathbudget.probes.stamp.wire import base_octets

DEFAULT_PORT = 8620
"""Not the 862 of RFC 8762: that one only root may listen on. A target's own port goes first."""
HEADERS_BYTES = 40 + 8
"""IPv6 and UDP; an upper bound for IPv4."""
LARGEST = 8_972
PROBE = "probe stamp"

OPTIONS = {
    "size": OptionSpec(
        int, 0, "UDP payload in octets; 0: as small as can be", minimum=0, maximum=LARGEST
    ),
    "follow_up": OptionSpec(bool, True, "ask when the last reply really left (RFC 8972)"),
    "flows": OptionSpec(
        int, 1, "source ports used in turn, to see parallel paths", minimum=1, maximum=64
    ),
    "key_file": OptionSpec(str, "", "file of shared keys; authenticates every packet", file=True),
    "key_id": OptionSpec(str, "", "which of its keys; may be left out where there is one"),
    "dscp": OptionSpec(int, 0, "traffic class, both ways (RFC 2474)", minimum=0, maximum=63),
    "ttl": OptionSpec(int, 255, "TTL or hop limit of the requests", minimum=1, maximum=255),
    "interface": OptionSpec(str, "", "network device or VRF to leave through"),
    "source": OptionSpec(str, "", "local address to leave from; the family follows from it"),
}


class StampProbe(FamiliesProbe[StampFamily]):
    """See `contract.BatchProbe`."""

    def __init__(
        self,
        environment: ProbeEnvironment,
        options: Options,
        ask_clock: AskClock | None = None,
    ) -> None:
        super().__init__()
        watcher = ClockWatcher(environment.clock)
        ask_clock = ask_clock or ClockSurvey(environment.clock, watcher).now
        extensions = _extensions(options, key_of(options), environment.rng.randbytes(LARGEST))
        try:
            for family in AddressFamily:
                session = SenderSession(
                    family,
                    environment.rng,
                    extensions,
                    default_port=DEFAULT_PORT,
                    follow_up=_flag(options, "follow_up"),
                    dscp=_whole(options, "dscp"),
                )
                self._families[family] = StampFamily(
                    environment,
                    family,
                    session,
                    watcher,
                    ask_clock,
                    default_port=DEFAULT_PORT,
                    signed=extensions.key is not None,
                )
                self._families[family].open(
                    _whole(options, "flows"), _packet_options(options, family)
                )
        except BaseException:
            self.close()
            raise

    async def drain(self) -> None:
        """See `contract.Probe.drain`."""
        await super().drain()
        for family in self._families.values():
            family.finish()


def key_of(options: Options) -> Key | None:
    """The key that the options name. Raises ConfigError."""
    path, name = _text(options, "key_file"), _text(options, "key_id")
    if not path:
        if name:
            raise _fault("key_id", f"{name!r} without a key file", "key_file beside it")
        return None
    keys = read_keys(path)
    if not name and len(keys) == 1:
        return next(iter(keys.values()))
    if name not in keys:
        problem = f"{path} has no key {name!r}" if name else f"{path} has {len(keys)} keys"
        raise _fault("key_id", problem, "one of " + ", ".join(sorted(keys)))
    return keys[name]


def _check(options: Options) -> list[Fault]:
    """Faults of the keys' file, of a size that does not hold what is sent, and of the source."""
    faults: list[Fault] = []
    key = noting(faults, "key_file", lambda: key_of(options), PROBE)
    if not faults:
        noting(faults, "size", lambda: _extensions(options, key, bytes(LARGEST)), PROBE)
    return [*faults, *source_faults(options)]


def _extensions(options: Options, key: Key | None, content: bytes) -> Extensions:
    """What goes behind the base packet. Raises ConfigError where it does not fit the size."""
    size = _whole(options, "size")
    try:
        return choose_extensions(
            size,
            content,
            follow_up=_flag(options, "follow_up"),
            dscp=_whole(options, "dscp"),
            key=key,
        )
    except ValueError as error:
        raise _fault("size", f"{size} octets do not hold what is sent", str(error)) from None


def _fault(name: str, problem: str, expected: str) -> ConfigError:
    return ConfigError([Fault(PROBE, name, problem, expected)])


def _packet_options(options: Options, family: AddressFamily) -> PacketOptions:
    source = _text(options, "source")
    if (":" in source) != (family is AddressFamily.IPV6):
        source = ""
    return PacketOptions(
        source=source,
        interface=_text(options, "interface"),
        dscp=_whole(options, "dscp"),
        ttl=_whole(options, "ttl"),
    )


def _text(options: Options, name: str) -> str:
    return str(options.get(name) or "")


def _flag(options: Options, name: str) -> bool:
    return bool(options.get(name, OPTIONS[name].default))


def _whole(options: Options, name: str) -> int:
    value = options.get(name, OPTIONS[name].default)
    assert isinstance(value, int)
    return value


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return StampProbe(environment, options)


def _cost(options: Options) -> Cost:
    """Keys are not read for it: that of an authenticated packet is taken where one is named."""
    key = Key("", bytes(16)) if _text(options, "key_file") else None
    least = (
        base_octets(authenticated=key is not None)
        + _extensions({**options, "size": 0}, key, b"").octets
    )
    octets = max(_whole(options, "size"), least)
    return Cost(packets=2, bytes=2 * (HEADERS_BYTES + octets))


STAMP = ProbeSpec(
    name="stamp",
    summary="round trip and both directions by a STAMP reflector (RFC 8762), kernel stamps",
    version=1,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    needs_port=True,
    default_port=DEFAULT_PORT,
    own_port=True,
    check=_check,
)
