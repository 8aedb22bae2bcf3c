"""Sets the service up on a host, as root. Sent as text to the host's Python, so the standard
library is all there is; its orders are JSON on standard input, the login among them: no secret is
in a command line. `root` is put before all paths, as ``systemctl --root`` does for images.
"""

import json
import os
import shutil
import subprocess
import sys
from typing import Any


class TroubleError(Exception):
    """Said in words, as an answer."""


class Setup:
    """What is asked for, and how it is done."""

    def __init__(self, wish: dict[str, Any]) -> None:
        self._wish = wish
        self._root: str = wish["root"]
        self._unit: str = wish["unit"]
        self._starts: bool = wish["start"]
        self._unit_file = self._at(f"/etc/systemd/system/{self._unit}")
        self._users_file = self._at("/etc/sysusers.d/pathbudget.conf")

    def install(self) -> dict[str, Any]:
        """From nothing, or over what is there."""
        wish = self._wish
        _put(self._users_file, wish["sysusers"], 0o644)
        _run("systemd-sysusers", *self._under_root(), self._users_file)
        # This unpacks what is compiled: the service itself may write nothing there.
        _run(sys.executable, "-E", self._at(wish["bundle"]), "--version")
        login = self._at(wish["login_path"])
        if wish["login"]:
            _put(login, wish["login"], 0o600, self._owner())
        elif not os.path.exists(login):  # noqa: PTH110
            raise TroubleError("there is no login file yet, and none was brought")
        if wish["policy"]:
            _put(self._at(wish["policy_path"]), wish["policy"], 0o644)
        _put(self._unit_file, wish["text"], 0o644)
        if self._starts:
            _run("systemctl", "daemon-reload")
        _run("systemctl", *self._under_root(), "enable", self._unit)
        if self._starts:
            _run("systemctl", "restart", self._unit)
        _remove_others(self._at(wish["bundle"]))
        return {}

    def remove(self) -> dict[str, Any]:
        """All of it; also where only a part is there."""
        if os.path.exists(self._unit_file):  # noqa: PTH110
            if self._starts:
                _run("systemctl", "stop", self._unit)
            _run("systemctl", *self._under_root(), "disable", self._unit)
            os.unlink(self._unit_file)  # noqa: PTH108
            if self._starts:
                _run("systemctl", "daemon-reload")
        for folder in self._wish["folders"]:
            shutil.rmtree(self._at(folder), ignore_errors=True)
        if os.path.exists(self._users_file):  # noqa: PTH110
            os.unlink(self._users_file)  # noqa: PTH108
        return {}

    def status(self) -> dict[str, Any]:
        """What systemd says."""
        try:
            text = _text(self._unit_file)
        except FileNotFoundError:
            return {"state": "not installed"}
        said: dict[str, str] = {}
        if self._starts:
            names = "ActiveState,SubState,StatusText,NRestarts,ActiveEnterTimestamp"
            shown = _run("systemctl", "show", self._unit, f"--property={names}")
            said = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
        state = f"{said.get('ActiveState', '')} {said.get('SubState', '')}".strip()
        return {
            "state": state or "installed",
            "says": said.get("StatusText", ""),
            "since": said.get("ActiveEnterTimestamp", ""),
            "restarts": said.get("NRestarts", ""),
            "current": os.path.basename(self._wish["bundle"]) in text,  # noqa: PTH119
        }

    def _at(self, path: str) -> str:
        return self._root + path

    def _under_root(self) -> list[str]:
        return [f"--root={self._root}"] if self._root else []

    def _owner(self) -> tuple[int, int]:
        """Of the service: the numbers of its user and group."""
        for line in _text(self._at("/etc/passwd")).splitlines():
            words = line.split(":")
            if words[0] == self._wish["user"]:
                return int(words[2]), int(words[3])
        raise TroubleError(f"systemd-sysusers made no user {self._wish['user']}")


def _put(path: str, text: str, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Whole or not at all, and never readable by more than it will be."""
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    beside = f"{path}.new"
    if os.path.lexists(beside):
        os.unlink(beside)  # noqa: PTH108
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        if owner is not None:
            os.fchown(number, *owner)
        os.fchmod(number, mode)
        file.write(text)
        file.flush()
        os.fsync(number)
    os.rename(beside, path)  # noqa: PTH104


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def _remove_others(bundle: str) -> None:
    """Earlier bundles, once the service runs by this one."""
    folder, name = os.path.split(bundle)
    for other in os.listdir(folder):  # noqa: PTH208
        path = os.path.join(folder, other)  # noqa: PTH118
        if other.startswith(name):
            continue
        if os.path.isdir(path):  # noqa: PTH112
            shutil.rmtree(path)
        else:
            os.unlink(path)  # noqa: PTH108


def _run(*words: str) -> str:
    pipe = subprocess.PIPE
    done = subprocess.run(  # noqa: S603
        words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT, check=False
    )
    said = done.stdout.decode(errors="replace")
    if done.returncode:
        last = (said.strip().splitlines() or [f"code {done.returncode}"])[-1]
        raise TroubleError(f"{' '.join(words[:3])}: {last}")
    return said


def main() -> None:
    """Do what standard input says, and answer in one line."""
    orders = b"".join(iter(lambda: os.read(0, 1 << 20), b""))
    wish = json.loads(orders)
    try:
        setup = Setup(wish)
        actions = {"install": setup.install, "remove": setup.remove, "status": setup.status}
        answer = actions[wish["do"]]()
    except (OSError, TroubleError) as error:
        answer = {"trouble": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
