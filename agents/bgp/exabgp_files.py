"""What exabgp is told: its configuration, its environment, and the program that passes lines on.

The session is passive (the router opens it), announces nothing, and everything stands in a folder
that only this user can read.
"""

import getpass
import os
import sys
from pathlib import Path

from pathbudget.agents.bgp.plans import SessionPlan

SINK = """import os, select, sys
out = os.open(sys.argv[1], os.O_WRONLY)
os.set_blocking(0, True)
while data := os.read(0, 1 << 16):
    while data:
        data = data[os.write(out, data):]
"""
"""Copies what exabgp says into a pipe, and ends with either side."""


def write_files(folder: Path, plan: SessionPlan) -> Path:
    """Write everything into `folder`; returns the configuration. The pipe is ``folder/lines``."""
    os.mkfifo(folder / "lines", 0o600)
    (folder / "sink.py").write_text(SINK)
    # exabgp splits its command at blanks: the interpreter gets a name without any.
    (folder / "python").symlink_to(os.path.realpath(sys.executable))
    config = folder / "exabgp.conf"
    config.write_text(configuration(folder, plan))
    return config


def configuration(folder: Path, plan: SessionPlan) -> str:
    """The text of exabgp's configuration file."""
    families = " ".join(f"{family} unicast;" for family in plan.families)
    add_path = "capability { add-path receive; }" if plan.add_path else ""
    return f"""process sink {{
  run {folder}/python -IS {folder}/sink.py {folder}/lines;
  encoder json;
}}
neighbor {plan.peer} {{
  router-id {plan.router_id};
  local-address {plan.listen.address};
  local-as {plan.local_asn};
  peer-as {plan.peer_asn};
  hold-time {plan.hold_time_s};
  passive true;
  family {{ {families} }}
  {add_path}
  api {{
    processes [ sink ];
    receive {{ parsed; update; open; notification; }}
    neighbor-changes;
  }}
}}
"""


def environment(plan: SessionPlan) -> dict[str, str]:
    """Ours, with what exabgp reads from it. It stays the user that we are."""
    return {
        **os.environ,
        "exabgp_tcp_bind": plan.listen.address,
        "exabgp_tcp_port": str(plan.listen.port),
        "exabgp_daemon_user": getpass.getuser(),
        "exabgp_api_ack": "false",
        "exabgp_api_cli": "false",
        "exabgp_log_level": "WARNING",
        "PYTHONUNBUFFERED": "1",
    }
