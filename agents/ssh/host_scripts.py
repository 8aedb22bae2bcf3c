"""Small programs that a host's Python runs before there is a bundle.

Each is the text of a program of its own, sent over the connection and held nowhere. Pythons that
are too old must be able to read them, so that they can be told so. They print one line of JSON.
"""

import base64
import shlex

BOOTSTRAP = (
    "import sys;sys.path.pop(0);import os,base64;"
    "exec(base64.b64decode(b''.join(iter(lambda:os.read(0,1).strip(),b''))))"
)
"""Reads a program from the first line of standard input, byte by byte, and leaves the rest."""

SUDO = ("sudo", "-n", "--")

CHECK = """
import importlib.machinery, importlib.util, hashlib, json, os, platform, sys
bundles, sha256, modules = sys.argv[1], sys.argv[2], sys.argv[3].split()
def digest(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""
home = os.path.expanduser("~")
folder = os.path.join(home, bundles)
print(json.dumps({
    "python": list(sys.version_info[:3]),
    "machine": platform.machine(),
    "suffixes": importlib.machinery.EXTENSION_SUFFIXES,
    "home": home,
    "installed": [one for one in modules if importlib.util.find_spec(one) is not None],
    "has_bundle": digest(os.path.join(folder, sha256 + ".pyz")) == sha256,
    "root": os.geteuid() == 0,
    "executable": sys.executable,
}))
"""
BRING = """
import hashlib, json, os, sys
bundles, name, sha256, size = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
path = os.path.join(os.path.expanduser("~"), bundles, name)
beside = "%s.%d.new" % (path, os.getpid())
trouble = ""
content = b""
while len(content) < size:
    more = os.read(0, 1 << 20)
    if not more:
        break
    content += more
if hashlib.sha256(content).hexdigest() != sha256:
    trouble = "it came with another SHA-256 than it left with; it was not kept"
else:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
    except OSError as error:
        trouble = error.strerror
        try:
            os.unlink(beside)
        except OSError:
            pass
print(json.dumps({"trouble": trouble}))
"""
RUN = """
import hashlib, os, sys
path, sha256 = os.path.join(os.path.expanduser("~"), sys.argv[1]), sys.argv[2]
try:
    with open(path, "rb") as file:
        found = hashlib.sha256(file.read()).hexdigest()
except OSError as error:
    sys.exit("%s: %s" % (path, error.strerror))
if found != sha256:
    sys.exit("%s has another SHA-256 than it should; it is not run" % path)
os.execv(sys.executable, [sys.executable, "-E", path] + sys.argv[3:])
"""
REMOVE = """
import json, os, shutil, sys
bundles, runs = (os.path.join(os.path.expanduser("~"), one) for one in sys.argv[1:3])
left = os.listdir(runs) if os.path.isdir(runs) else []
if not left:
    shutil.rmtree(bundles, ignore_errors=True)
    for one in (runs, os.path.dirname(bundles), os.path.dirname(runs)):
        try:
            os.rmdir(one)
        except OSError:
            pass
print(json.dumps({"left": left}))
"""


def command(python: str, *arguments: str, sudo: bool = False) -> str:
    """The command line that runs a program sent to it (see `first_line`) with these arguments.

    `sudo`: as root, by a sudo that asks for nothing.
    """
    return shlex.join([*(SUDO if sudo else ()), python, "-E", "-c", BOOTSTRAP, *arguments])


def first_line(program: str) -> bytes:
    """How a program is sent."""
    return base64.b64encode(program.encode()) + b"\n"
