"""Programs of others that tests start, and the Debian package of each.

A test that starts one is marked ``needs(name)`` and finds it by `program`. A name that is not in
`PACKAGES` is refused even where the program happens to be there, so that no test relies on what
only some machines have; `.ci/system-packages` installs every package, and tests/repository checks.
"""

import os
import shutil

PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
"""Where to look: Debian keeps daemons where only root looks."""

PACKAGES = {
    "tshark": "tshark",
    "openssl": "openssl",
    "nginx": "nginx-light",
    "caddy": "caddy",
    "gtlsserver": "ngtcp2-server",
    "gtlsclient": "ngtcp2-client",
    "unbound": "unbound",
    "knotd": "knot",
    "knotc": "knot",
    "kdig": "knot-dnsutils",
    "dnsdist": "dnsdist",
    "bird": "bird2",
    "scamper": "scamper",
    "nats-server": "nats-server",
    "sshd": "openssh-server",
    "systemctl": "systemd",
    "systemd-analyze": "systemd",
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "promtool": "prometheus",
}
"""Program to Debian package."""


def program(name: str) -> str:
    """Where a program is. Raises KeyError for one that no package here brings."""
    package = PACKAGES[name]
    found = shutil.which(name, path=PATH)
    assert found is not None, f"{name} is not here: install the Debian package {package}"
    return found
