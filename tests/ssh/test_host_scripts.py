"""The small programs that hosts run before there is a bundle, and the bundle by itself."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.ssh.servers import other_python

from pathbudget.agents.campaign.messages import Report
from pathbudget.agents.ssh import host_scripts
from pathbudget.agents.ssh.bundle import Bundle, campaign_bundle
from pathbudget.agents.ssh.remote.working import Speaker


def run(program: str, *words: str, data: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["sh", "-c", host_scripts.command(other_python(), *words)],
        input=host_scripts.first_line(program) + data,
        capture_output=True,
        check=False,
    )


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return campaign_bundle(["icmp", "tcp"])


def test_a_file_with_another_hash_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "one.pyz"
    path.write_text("print('ran')")
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    assert run(host_scripts.RUN, str(path), right).stdout == b"ran\n"
    done = run(host_scripts.RUN, str(path), "0" * 64)
    assert done.returncode
    assert b"another SHA-256" in done.stderr
    assert done.stdout == b""


def test_what_came_with_another_hash_is_not_kept(tmp_path: Path) -> None:
    words = (str(tmp_path / "bundles"), "x.pyz", "0" * 64, "4")
    answer = json.loads(run(host_scripts.BRING, *words, data=b"abcd").stdout)
    assert "another SHA-256" in answer["trouble"]
    assert not (tmp_path / "bundles").exists()


def test_a_connection_that_ends_early_leaves_nothing(tmp_path: Path) -> None:
    words = (str(tmp_path / "bundles"), "x.pyz", hashlib.sha256(b"abcd").hexdigest(), "4")
    assert json.loads(run(host_scripts.BRING, *words, data=b"ab").stdout)["trouble"]
    assert run("", data=b"").returncode == 0
    assert not (tmp_path / "bundles").exists()


def test_the_bundle_needs_nothing_but_python(bundle: Bundle, tmp_path: Path) -> None:
    path = tmp_path / bundle.name
    path.write_bytes(bundle.content)
    command = [other_python(), "-I", "-S", str(path), "about", str(tmp_path / "runs"), "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert "ICMP raw IPv4" in said["abilities"]
    assert said["free_bytes"] > 0


def test_a_library_that_was_changed_beside_the_bundle_is_put_right(
    bundle: Bundle, tmp_path: Path
) -> None:
    path = tmp_path / bundle.name
    path.write_bytes(bundle.content)
    command = [other_python(), "-I", "-S", str(path), "about", str(tmp_path / "runs"), "x"]
    subprocess.run(command, capture_output=True, check=True)
    (library,) = path.with_name(f"{path.name}.libraries").rglob("msgspec/__init__.py")
    library.write_text("raise SystemExit('changed')")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_same_sources_give_the_same_bundle() -> None:
    """In two processes, one after the other: what this one made may have made room for others."""
    code = (
        "from pathbudget.agents.ssh.bundle import campaign_bundle\n"
        "print(campaign_bundle(['tcp']).sha256)"
    )
    command = [sys.executable, "-P", "-c", code]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert first == second


def test_a_bundle_is_known_by_the_hash_of_its_bytes(bundle: Bundle) -> None:
    assert hashlib.sha256(bundle.content).hexdigest() == bundle.sha256


def test_probes_that_need_more_bring_more(bundle: Bundle, tmp_path: Path) -> None:
    larger = campaign_bundle(["quic"])
    (tmp_path / "larger").write_bytes(larger.content)
    names = zipfile.ZipFile(tmp_path / "larger").namelist()
    assert any(name.startswith("libraries/aioquic/") for name in names)
    assert len(larger.content) > len(bundle.content)


def test_last_words_have_room_and_nothing_said_can_stop_a_worker(tmp_path: Path) -> None:
    ballast = tmp_path / "ballast"
    ballast.write_bytes(b"\1" * 10)
    with Path("/dev/full").open("wb", buffering=0) as full:
        Speaker(ballast, full.fileno())(Report(0, 0, {}, 0))
    assert not ballast.exists()
