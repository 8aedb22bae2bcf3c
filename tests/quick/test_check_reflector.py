"""`pathbudget check` on a reflector of ours: every mode over TLS and QUIC, with its authority."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PATHBUDGET = (sys.executable, "-c", "from pathbudget.agents.cli.main import run; run()")
ADDRESS, PORT = "127.0.9.21", 8621
MODES = {
    (carrier, mode) for carrier in ("tls", "quic") for mode in ("cold", "resumed", "early_data")
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A reflector that serves, and the file of its authority."""
    folder = tmp_path_factory.mktemp("reflector")
    where = ["--listen", ADDRESS, "--name", ADDRESS, "--port", "8620", "--https-port", str(PORT)]
    command = [*PATHBUDGET, "reflector", *where, "--certificate-directory", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "Listening" in process.stderr.readline()
            yield folder / "ca.pem"
        finally:
            process.terminate()


def test_every_mode_over_both_transports(authority: Path) -> None:
    command = [*PATHBUDGET, "check", f"{ADDRESS}:{PORT}", "--ca-file", str(authority)]
    environment = {**os.environ, "COLUMNS": "80"}
    with subprocess.Popen(
        [*command, "--json", "--duration", "4.5s"], stdout=subprocess.PIPE, env=environment
    ) as json_look:
        table = subprocess.run(
            [*command, "--duration", "4.5s"], capture_output=True, text=True, env=environment
        )
        said, _ = json_look.communicate()
    report = json.loads(said)
    setups = {(one["transport"], one["mode"]): one for one in report["requests"]["setups"]}
    assert set(setups) == MODES
    for one in setups.values():
        assert one["n"] > one["losses"]
    for mode in ("resumed", "early_data"):
        assert setups["tls", mode]["accepted_share"]["value"] == 1
        assert setups["tls", mode]["certificate_bytes"] == 0
        assert setups["quic", mode]["accepted_share"]["value"] == 1
    assert table.returncode == 0, table.stderr
    assert max(map(len, table.stdout.splitlines())) <= 80
    for words in ("set-up 0-RTT", "QUIC set-up resumed", "QUIC 0-RTT", "network p50, ms"):
        assert words in table.stdout


def test_an_authority_that_is_no_file_is_told_at_once(tmp_path: Path) -> None:
    command = [*PATHBUDGET, "check", "127.0.0.1", "--ca-file", str(tmp_path / "none.pem")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--ca-file" in done.stderr
