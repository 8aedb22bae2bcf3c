"""`pathbudget alerts watch` as a process: killed and started again, it tells nothing twice."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.alerts.conftest import AT, RULES, Hook, a_heartbeat, echoes

from pathbudget.agents.alerts.memory import memory_of, read_memory
from pathbudget.agents.daemon.status import STATUS, write_status
from pathbudget.agents.store.parquet import Store

PATIENCE_S = 60.0
RULE = """
[[rule]]
name = "silence"
kind = "agent_silent"
after = "1h"
fade = "0s"
together = "0s"
"""


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def started(rules: Path, store: Path, state: Path) -> subprocess.Popen[str]:
    words = ["alerts", "watch", rules, "--store", store, "--state", state]
    return subprocess.Popen(
        [sys.executable, "-m", "pathbudget.agents.cli.main", *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_killed_and_started_again_it_tells_once_and_once_that_it_is_over(
    tmp_path: Path, hook: Hook
) -> None:
    rules, store, state = tmp_path / "rules.toml", tmp_path / "store", tmp_path / "agent"
    rules.write_text(RULES.format(url=hook.url).replace("30s", "1s") + RULE)
    Store(store).write([echoes([10.0] * 10)])
    state.mkdir()
    write_status(state / STATUS, a_heartbeat("one", AT))

    def seen() -> int:
        path = memory_of(rules)
        return read_memory(path).last_look_unix_ns if path.exists() else 0

    process = started(rules, store, state)
    try:
        until(lambda: len(hook.posts) == 1)
        until(lambda: not read_memory(memory_of(rules)).outboxes["hook"].waiting)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        process = started(rules, store, state)
        for _ in range(2):
            before = seen()
            until(lambda before=before: seen() > before)  # type: ignore[misc]
        assert len(hook.posts) == 1
        second = started(rules, store, state)
        assert second.wait(PATIENCE_S) == 5
        _, said = second.communicate()
        assert "another process watches with this memory" in said
        write_status(state / STATUS, a_heartbeat("one", time.time_ns()))
        until(lambda: len(hook.posts) == 2)
        assert b'"status":"resolved"' in hook.posts[1].body
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()
