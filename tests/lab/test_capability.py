"""When a lab cannot start, one sentence names the step that fails and what would help.

The refusals are real: a seccomp filter, put on before, lets chosen system calls fail with EPERM,
as container run-times do.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAIN_USER = Path(__file__).parent / "plain_user.py"

REFUSE = """
import ctypes, platform, struct, sys
numbers = {"x86_64": {"unshare": 272, "mount": 165, "fsopen": 430, "setsockopt": 54, "bind": 49},
           "aarch64": {"unshare": 97, "mount": 40, "fsopen": 430, "setsockopt": 208, "bind": 200}}
number = numbers[platform.machine()][sys.argv[1]]
error = int(sys.argv[2])
step = struct.Struct("HBBI")
program = (step.pack(0x20, 0, 0, 0)                 # load the number of the system call
           + step.pack(0x15, 0, 1, number)          # is it this one?
           + step.pack(6, 0, 0, 0x00050000 | error) # then it fails
           + step.pack(6, 0, 0, 0x7FFF0000))        # else go on
text = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(4, ctypes.addressof(text)))) == 0
from pathbudget.agents.lab.capability import why_not
print(why_not())
"""


def sentence(call: str, error: int, *, as_root: bool) -> str:
    command = [sys.executable, "-c", REFUSE, call, str(error)]
    if not as_root and os.geteuid() == 0:
        command = [sys.executable, str(PLAIN_USER), "65534", "--", *command]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


CASES = [
    ("unshare", 1, "making namespaces is refused (Operation not permitted); allow user namespaces"),
    ("unshare", 28, "raise the limit: sysctl -w user.max_user_namespaces=10000"),
    ("mount", 1, "mounting a fresh /proc is refused"),
    ("fsopen", 38, "a folder in memory is refused (Function not implemented); use Linux 5.2"),
    ("setsockopt", 1, "a packet socket with a ring is refused (Operation not permitted)"),
]


@pytest.mark.needs("lab")
@pytest.mark.parametrize(("call", "error", "words"), CASES)
def test_the_refused_step_is_named_with_its_remedy(call: str, error: int, words: str) -> None:
    assert words in sentence(call, error, as_root=False)


@pytest.mark.needs("lab")
def test_a_refused_lab_is_one_sentence_and_not_a_traceback() -> None:
    world = Path(__file__).resolve().parents[2] / "examples" / "world.toml"
    code = REFUSE.replace(
        "print(why_not())",
        "sys.argv = ['pathbudget', 'lab', 'run', sys.argv[3], '--', 'true']\n"
        "from pathbudget.agents.cli.main import run\nrun()",
    )
    command = [sys.executable, "-c", code, "unshare", "1", str(world)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 5
    assert "no lab can start here: making namespaces is refused" in ran.stderr
    assert "Traceback" not in ran.stderr
