"""Runs a command as a user without any right: ``python plain_user.py UID -- COMMAND`` (as root).

Python and the repository may lie where only root may look (``/root``). So in a mount namespace of
its own, every locked folder on the way to them is covered by an open one that holds nothing else.
"""

import ctypes
import os
import sys
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
BIND_RECURSIVE, PRIVATE_RECURSIVE, NEW_MOUNTS = 0x1000 | 0x4000, 0x4000 | 0x40000, 0x20000


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    if libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()
    ):
        raise OSError(ctypes.get_errno(), f"mount {target}")


def locked_ancestor(path: Path) -> Path | None:
    for parent in [*reversed(path.parents), path]:
        if parent.is_dir() and not parent.stat().st_mode & 0o001:
            return parent
    return None


def open_the_way(paths: set[Path]) -> None:
    kept: dict[Path, list[tuple[Path, int]]] = {}
    for path in paths:
        locked = locked_ancestor(path)
        if locked:
            kept.setdefault(locked, []).append((path, os.open(path, os.O_PATH)))
    for locked, inside in kept.items():
        mount("tmpfs", str(locked), "tmpfs", 0, "mode=0755")
        for path, descriptor in inside:
            path.mkdir(parents=True, exist_ok=True)
            mount(f"/proc/self/fd/{descriptor}", str(path), "", BIND_RECURSIVE)
            os.close(descriptor)


def main() -> None:
    user, _, *command = sys.argv[1:]
    if libc.unshare(NEW_MOUNTS):
        raise OSError(ctypes.get_errno(), "unshare")
    mount("", "/", "", PRIVATE_RECURSIVE)
    root = Path(__file__).resolve().parents[2]
    needed = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), root}
    open_the_way({path for path in needed if not needed & set(path.parents)})
    os.setgroups([])
    os.setresgid(int(user), int(user), int(user))
    os.setresuid(int(user), int(user), int(user))
    os.environ["HOME"] = "/nonexistent"
    os.chdir("/")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
