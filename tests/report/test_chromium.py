"""The page in a real browser with no network: no complaint, charts drawn, no wider than it should.

Headless Chromium over its DevTools pipe: no port, no driver package.

The whole browser runs in an empty network namespace where the kernel allows one, and resolves no
name in any case.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from tests.routes_command.week import make_report

from pathbudget.analysis.report.html import render_html, render_routes_html
from pathbudget.analysis.results import Evaluation

EvaluationFactory = Callable[..., Evaluation]

pytestmark = pytest.mark.needs("chromium")

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-breakpad",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=127.0.0.1:9",
    "--remote-debugging-pipe",
)


LAUNCHER = """
import fcntl, os, sys
here, there = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(here, 3)
os.dup2(there, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Puts the pipe where the browser looks for it: commands on 3, answers on 4."""


def namespace_prefix() -> list[str]:
    """Command that runs another one where there is no network; empty where that is not allowed."""
    if not shutil.which("unshare"):
        return []
    prefix = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    works = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return prefix if works else []


class Browser:
    """One browser with one page. Console messages and failed loads are collected in `trouble`."""

    def __init__(self) -> None:
        self.trouble: list[str] = []
        self.requests: list[str] = []
        self._next = 0
        self._session = ""
        self._events: list[dict[str, Any]] = []
        self._buffer = b""

    def __enter__(self) -> Self:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        assert program, "no chromium"
        self._folder = tempfile.TemporaryDirectory(
            prefix="browser-of-a-test-", ignore_cleanup_errors=True
        )
        inward, self._to = os.pipe()
        self._from, outward = os.pipe()
        command = [*namespace_prefix(), program, *FLAGS, f"--user-data-dir={self._folder.name}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(inward), str(outward), *command],
            pass_fds=(inward, outward),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._folder.name},
            start_new_session=True,
        )
        os.close(inward)
        os.close(outward)
        try:
            self._attach()
        except BaseException:
            self._end()
            raise
        return self

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        os.close(self._to)
        os.close(self._from)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result; events that come meanwhile are kept."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._next:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "the browser ended"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        method, facts = event.get("method", ""), event.get("params", {})
        self._events.append(event)
        if method == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning", "assert"):
            self.trouble.append(f"console.{facts['type']}: {facts['args']}")
        elif method == "Runtime.exceptionThrown":
            self.trouble.append(f"exception: {facts['exceptionDetails']}")
        elif method == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning"):
            self.trouble.append(f"log: {facts['entry']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])

    def open(self, file: Path, width: int, height: int = 900, *, settle_ms: int = 700) -> None:
        """Load a file in a viewport of exactly that size, and wait until its charts are drawn."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self._events.clear()
        self.call("Page.navigate", url=file.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._note(self._receive())
        self.evaluate(f"new Promise(done => setTimeout(() => done(1), {settle_ms}))")

    def evaluate(self, script: str) -> Any:
        """Value of a script in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, file: Path, *, top: int = 0, height: int | None = None) -> None:
        """A picture of the page, or of `height` pixels of it from `top`."""
        width = self.evaluate("innerWidth")
        full = self.evaluate("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": top, "width": width, "height": height or full - top, "scale": 1}
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(picture["data"]))

    def pdf(self, file: Path) -> None:
        """The page as it prints on A4."""
        pages = self.call(
            "Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True
        )
        file.write_bytes(base64.b64decode(pages["data"]))


WIDTHS = (1280, 390)

COUNTS = """(() => ({
  inner: innerWidth,
  page: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth),
  heatmap: document.querySelectorAll("#chart-heatmap .hm image").length,
  curves: document.querySelectorAll("#chart-distributions .cartesianlayer path.js-line").length,
  bars: document.querySelectorAll("#chart-waterfall .barlayer .point path").length,
  places: document.querySelectorAll("#chart-map .cartesianlayer path.point").length,
  overflowing: [...document.querySelectorAll("main *")]
    .filter(e => !e.closest(".scroll") && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.outerHTML.slice(0, 99)),
}))()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as one:
        yield one


def opened(browser: Browser, folder: Path, evaluation: Evaluation, width: int) -> dict[str, Any]:
    """Open the report of `evaluation`; what the page says about itself."""
    file = folder / "report.html"
    file.write_text(render_html(evaluation), encoding="utf-8")
    browser.trouble.clear()
    browser.requests.clear()
    browser.open(file, width)
    return dict(browser.evaluate(COUNTS))


def outside(browser: Browser) -> list[str]:
    """Requests for anything but the file itself."""
    return [url for url in browser.requests if not url.startswith(("file:", "data:"))]


@pytest.mark.parametrize("width", WIDTHS)
def test_charts_are_drawn_and_nothing_is_wrong(
    browser: Browser, tmp_path: Path, evaluation: Evaluation, width: int
) -> None:
    seen = opened(browser, tmp_path, evaluation, width)
    assert browser.trouble == []
    assert outside(browser) == []
    assert seen["inner"] == width
    assert seen["page"] == width
    assert seen["overflowing"] == []
    assert seen["heatmap"] == 1
    assert seen["curves"] == len(evaluation.regions)
    assert seen["bars"] == 6 * (1 + len(evaluation.regions))
    assert seen["places"] > 1000


HINTS = """(() => [...document.querySelectorAll("section > .scroll, figure > .scroll")].map(box => [
  box.previousElementSibling.hidden,
  box.clientWidth + 1 <
    (parseFloat(box.querySelector(".chart")?.style.minWidth) || box.scrollWidth),
]))()"""
STACKED = "getComputedStyle(document.querySelector('.stacked tr')).display"


@pytest.mark.parametrize(("width", "display"), [(1280, "table-row"), (390, "block")])
def test_what_does_not_fit_says_so_and_the_first_table_becomes_cards(
    browser: Browser, tmp_path: Path, evaluation: Evaluation, width: int, display: str
) -> None:
    opened(browser, tmp_path, evaluation, width)
    hints = browser.evaluate(HINTS)
    assert all(hidden is not wide for hidden, wide in hints)
    assert any(wide for _, wide in hints) is (width == 390)
    assert browser.evaluate(STACKED) == display


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_names_neither_run_nor_widen_the_page(
    browser: Browser, tmp_path: Path, hostile: Evaluation, width: int
) -> None:
    seen = opened(browser, tmp_path, hostile, width)
    assert browser.trouble == []
    assert outside(browser) == []
    assert seen["page"] == width
    assert browser.evaluate("document.querySelectorAll('img, main a, svg a').length") == 0


def test_the_other_views_draw_too(browser: Browser, tmp_path: Path, evaluation: Evaluation) -> None:
    opened(browser, tmp_path, evaluation, 1280)
    clicked = browser.evaluate(
        "(() => { const all = document.querySelectorAll('.views button');"
        " all.forEach(b => b.click()); return all.length; })()"
    )
    assert clicked >= 5
    assert browser.trouble == []
    pressed = "document.querySelector('.views button[aria-pressed=true]').textContent"
    assert browser.evaluate(pressed) == "p95"


def test_nothing_measured_still_makes_a_page(
    browser: Browser, tmp_path: Path, evaluation_of: EvaluationFactory
) -> None:
    seen = opened(browser, tmp_path, evaluation_of(0, 0, 0), 390)
    assert browser.trouble == []
    assert seen["page"] == 390


ROUTES = """(() => ({
  graphs: document.querySelectorAll("svg.path").length,
  squares: document.querySelectorAll("svg.path rect.node").length,
  lines: document.querySelectorAll("#chart-route-timeline .scatterlayer path.js-line").length,
  numbers: [...document.querySelectorAll("#chart-route-timeline .annotation-text")]
    .map(e => e.textContent),
  clipped: [...document.querySelectorAll("svg.path text")].filter(e => {
    const box = e.getBoundingClientRect(), frame = e.ownerSVGElement.getBoundingClientRect();
    return box.right > frame.right + 1 || box.left < frame.left - 1 || box.top < frame.top - 1
      || box.bottom > frame.bottom + 1;
  }).map(e => e.textContent),
}))()"""


@pytest.mark.parametrize("width", WIDTHS)
def test_paths_and_delay_are_drawn_and_nothing_is_cut_off(
    browser: Browser, tmp_path: Path, evaluation_of: EvaluationFactory, width: int
) -> None:
    """The wide one is the page of routes alone, the narrow one a whole report with routes."""
    file, week = tmp_path / "routes.html", make_report()
    alone = width > 600
    page = (
        render_routes_html(week, "Routes") if alone else render_html(evaluation_of(1, 1, 1), week)
    )
    file.write_text(page, encoding="utf-8")
    browser.trouble.clear()
    browser.requests.clear()
    browser.open(file, width)
    seen, routes = browser.evaluate(COUNTS), browser.evaluate(ROUTES)
    assert browser.trouble == []
    assert outside(browser) == []
    assert seen["page"] == width
    assert seen["overflowing"] == []
    assert routes["graphs"] == routes["squares"] == 4
    assert routes["lines"] >= 1
    assert sorted(routes["numbers"]) == ["1", "3"]  # those of the first path
    assert routes["clipped"] == []
    hints = browser.evaluate(HINTS)
    assert all(hidden is not wide for hidden, wide in hints)


def test_the_browser_would_tell(browser: Browser, tmp_path: Path) -> None:
    """The checks above can fail: a wide, broken page that calls out is noticed in every way."""
    file = tmp_path / "bad.html"
    file.write_text(
        "<body style='width:2000px'><script>throw new Error('x')</script>"
        "<img src='http://192.0.2.1/a.png'>"
    )
    browser.trouble.clear()
    browser.requests.clear()
    browser.open(file, 390)
    assert any("exception" in line for line in browser.trouble)
    assert outside(browser) == ["http://192.0.2.1/a.png"]
    assert browser.evaluate("document.documentElement.scrollWidth") >= 2000
