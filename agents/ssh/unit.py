"""The agent as a service of systemd: its unit, and the user that it runs as.

docs/ssh.md says what each line is for.
"""

from dataclasses import dataclass

NAME = "pathbudget-agent.service"
USER = "pathbudget"
BUNDLES = "/opt/pathbudget"
SETTINGS = "/etc/pathbudget"
LOGIN, POLICY = f"{SETTINGS}/login.toml", f"{SETTINGS}/policy.toml"
STATE = "/var/lib/pathbudget"
SYSUSERS = f'u {USER} - "pathbudget agent" {STATE}\n'
HOMES = ("/home/", "/root/")
"""Out of sight of the service."""


@dataclass(frozen=True, slots=True)
class Service:
    """What differs from host to host."""

    python: str
    bundle: str
    """Path on the host."""
    policy: bool = False
    """Whether there is a policy file."""
    realtime: bool = False
    """Whether the agent may take SCHED_FIFO; needs CAP_SYS_NICE."""


def unit(service: Service) -> str:
    """The text of the unit file."""
    capabilities = "CAP_NET_RAW CAP_SYS_NICE" if service.realtime else "CAP_NET_RAW"
    words = [service.python, "-E", service.bundle, "agent", "--login", LOGIN, "--state", STATE]
    words += ["--policy", POLICY] if service.policy else []
    words += ["--realtime", "on" if service.realtime else "off"]
    return f"""\
# Made by `pathbudget fleet install`; `fleet upgrade` writes it anew. Own settings: systemctl edit.
[Unit]
Description=pathbudget agent: measures network paths
Wants=network-online.target
After=network-online.target nss-lookup.target time-sync.target
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={" ".join(_quoted(word) for word in words)}
ExecReload=kill -HUP $MAINPID
User={USER}
Group={USER}
AmbientCapabilities={capabilities}
CapabilityBoundingSet={capabilities}
WatchdogSec=60
Restart=on-failure
RestartSec=10
TimeoutStopSec=30
StateDirectory=pathbudget
StateDirectoryMode=0700
UMask=0077
WorkingDirectory={STATE}

NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime={"no" if service.realtime else "yes"}
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
MemoryMax=512M
TasksMax=64

[Install]
WantedBy=multi-user.target
"""


def _quoted(word: str) -> str:
    """As systemd reads it: % and $ stand for themselves."""
    plain = word.replace("%", "%%").replace("$", "$$")
    return f'"{plain}"' if any(letter.isspace() for letter in plain) else plain
