"""The hosts file: which host stands for which vantage, and how it is reached. docs/ssh.md."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathbudget.agents.campaign.entry_values import duration_ns, texts
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import Entry, Interval, did_you_mean, show
from pathbudget.sites.toml_reader import read_toml

TOP = ("defaults", "jump", "host", "give_up")
WAY = ("host", "port", "user", "keys", "agent", "known_hosts")
"""Keys that say how a machine is reached."""
HOST = (*WAY, "vantage", "jump", "python", "folder", "sudo")
DEFAULT_GIVE_UP = "10m"
CACHE, STATE = ".cache/pathbudget", ".local/state/pathbudget"
PORT = Interval(1, 65535, "a port, 1 to 65535")


@dataclass(frozen=True, slots=True)
class Way:
    """How one machine is reached."""

    host: str
    port: int = 22
    user: str = ""
    """Empty: the name of the user here."""
    keys: tuple[Path, ...] = ()
    """Private keys; none: the usual ones of ``~/.ssh``."""
    agent: bool = True
    """Whether keys of an agent (``SSH_AUTH_SOCK``) are tried."""
    known_hosts: tuple[Path, ...] = ()

    @property
    def address(self) -> str:
        """As a person writes it."""
        return f"{self.host}:{self.port}" if self.port != 22 else self.host


@dataclass(frozen=True, slots=True)
class Host:
    """The host of one vantage."""

    vantage: str
    way: Way
    jumps: tuple[Way, ...] = ()
    """Through which machines, nearest first."""
    python: str = ""
    """Which Python; empty: the first that is new enough."""
    folder: str = ""
    """For bundle and results; empty: by the XDG conventions under the home of the user."""
    sudo: bool = False
    """Whether installing goes through ``sudo -n``."""

    @property
    def bundles(self) -> str:
        """Folder of bundles; a relative one is under the home of the user."""
        return f"{self.folder or CACHE}/bundles"

    @property
    def runs(self) -> str:
        """Folder of results that wait."""
        return f"{self.folder or STATE}/runs"


@dataclass(frozen=True, slots=True)
class Hosts:
    """A hosts file without a fault."""

    path: Path
    by_vantage: Mapping[str, Host]
    give_up_ns: int
    """How long a host that does not answer is tried after everything else is over."""

    def of(self, vantages: Sequence[str], campaign: str) -> dict[str, Host]:
        """Those of a campaign's vantages. Raises ConfigError for each that has none."""
        faults = [
            Fault(
                str(self.path),
                "host",
                f"no host for the vantage {show(name)} of {campaign}",
                did_you_mean(name, self.by_vantage),
            )
            for name in vantages
            if name not in self.by_vantage
        ]
        if faults:
            raise ConfigError(faults)
        return {name: self.by_vantage[name] for name in vantages}


def load_hosts(path: Path) -> Hosts:
    """Read a hosts file. Raises ConfigError with every fault."""
    faults: list[Fault] = []
    top = Entry(str(path), read_toml(path), lambda key: key, faults)
    top.only(TOP)
    give_up = duration_ns(top, "give_up", DEFAULT_GIVE_UP)
    defaults = _table(top, "defaults")
    Entry(top.file, defaults, lambda key: f"defaults.{key}", faults).only(
        key for key in HOST if key not in ("host", "vantage")
    )
    jumps: dict[str, Way] = {}
    for entry in _entries(top, "jump", {key: defaults[key] for key in WAY if key in defaults}):
        entry.only(("name", *WAY))
        name = entry.text("name", None)
        if name in jumps:
            entry.fault("name", f"{show(name)} is there twice", "a name of its own")
        jumps[name] = _way(entry, path)
    hosts: dict[str, Host] = {}
    for entry in _entries(top, "host", defaults):
        host = _host(entry, path, jumps)
        if host.vantage in hosts:
            entry.fault("vantage", f"{show(host.vantage)} has a host already", "one host each")
        hosts[host.vantage] = host
    if not hosts and not faults:
        top.fault("host", "is missing", "at least one [[host]]")
    if faults or give_up is None:
        raise ConfigError(faults)
    return Hosts(path, hosts, give_up)


def _host(entry: Entry, path: Path, jumps: Mapping[str, Way]) -> Host:
    entry.only(HOST)
    names = texts(entry, "jump")
    for name in names:
        if name not in jumps:
            entry.fault("jump", f"{show(name)} is unknown", did_you_mean(name, jumps))
    folder = entry.text("folder")
    if ".." in Path(folder).parts:
        entry.fault("folder", f"{show(folder)} is not usable", "a folder without ..")
    return Host(
        vantage=entry.text("vantage", None),
        way=_way(entry, path),
        jumps=tuple(jumps[name] for name in names if name in jumps),
        python=entry.text("python"),
        folder=folder.rstrip("/"),
        sudo=_flag(entry, "sudo", default=False),
    )


def _way(entry: Entry, path: Path) -> Way:
    host, user = entry.text("host", None), entry.text("user")
    for key, text in (("host", host), ("user", user)):
        if text.startswith("-") or any(letter.isspace() for letter in text):
            entry.fault(key, f"{show(text)} is not usable", "a name or an address")
    known_hosts = [_path(path, name) for name in texts(entry, "known_hosts")]
    for file in known_hosts:
        if not file.is_file():
            entry.fault("known_hosts", f"{file}: no such file", "a file as of ssh-keyscan")
    keys = [_path(path, name) for name in texts(entry, "keys")]
    for file in keys:
        if not file.is_file():
            entry.fault("keys", f"{file}: no such file", "a private key")
    return Way(
        host=host,
        port=entry.whole_number("port", PORT) or 22,
        user=user,
        keys=tuple(keys),
        agent=_flag(entry, "agent", default=True),
        known_hosts=tuple(known_hosts) or _usual_known_hosts(),
    )


def _usual_known_hosts() -> tuple[Path, ...]:
    return (Path("~/.ssh/known_hosts").expanduser(), Path("/etc/ssh/ssh_known_hosts"))


def _path(beside: Path, name: str) -> Path:
    """Relative names are beside the hosts file."""
    return beside.parent / Path(name).expanduser()


def _flag(entry: Entry, key: str, *, default: bool) -> bool:
    value = entry.values.get(key, default)
    if not isinstance(value, bool):
        entry.fault(key, f"{show(value)} is neither true nor false", "true or false")
        return default
    return value


def _table(top: Entry, key: str) -> Mapping[str, object]:
    value = top.values.get(key, {})
    if not isinstance(value, dict):
        top.fault(key, f"{show(value)} is no table", f"a table [{key}]")
        return {}
    return value


def _entries(top: Entry, key: str, defaults: Mapping[str, object]) -> Iterable[Entry]:
    values = top.values.get(key, [])
    if not isinstance(values, list) or not all(isinstance(one, dict) for one in values):
        top.fault(key, f"{show(values)} is no list of tables", f"tables [[{key}]]")
        return
    for number, value in enumerate(values):
        yield Entry(top.file, {**defaults, **value}, _under(f"{key}[{number}]"), top.faults)


def _under(place: str) -> Callable[[str], str]:
    return lambda key: f"{place}.{key}" if key else place
