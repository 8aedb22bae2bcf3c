"""The scripted server: its scripts and their faults, and what it answers whom."""

import asyncio
import json
import random
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from pathbudget.agents.completions.script import Script, Spread, read_script
from pathbudget.agents.completions.server import CompletionsServer, Serving
from pathbudget.probes.errors import ConfigError, ReflectorError

MS = 1_000_000


def written(folder: Path, text: str, name: str = "script.toml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_script_in_both_forms(tmp_path: Path) -> None:
    toml = "slots = 4\nfirst_token = { median_ms = 120, sigma = 0.4 }\n[answer]\ntokens = 9\n"
    read = read_script(written(tmp_path, toml))
    assert (read.slots, read.answer.tokens, read.token.ms) == (4, 9, 25)
    as_json = json.dumps(
        {"slots": 4, "first_token": {"median_ms": 120, "sigma": 0.4}, "answer": {"tokens": 9}}
    )
    assert read_script(written(tmp_path, as_json, "script.json")) == read


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("slots = 0\n", "slots"),
        ("slot = 1\n", "slot"),
        ("token = { ms = 1, mean_ms = 2 }\n", "token: has mean_ms and ms; expected ms, or mean_ms"),
        ("token = {}\n", "token: is empty; expected ms, or"),
        ("token = { low_ms = 5, high_ms = 2 }\n", "low_ms is above high_ms"),
        ("[trouble]\nkind = 'fire'\n", "trouble.kind"),
        ("[trouble]\nshare = 2\n", "trouble.share"),
        ("slots = \n", "script.toml"),
        ("token = { ms = nan }\n", "token.ms: nan is no value; expected a number from 0 to"),
        ("token = 7\n", "token: 7 is no table; expected a table with some of ms,"),
    ],
    ids=["none", "unknown", "two", "empty", "order", "kind", "share", "syntax", "nan", "table"],
)
def test_faults_of_a_script_name_the_place(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as told:
        read_script(written(tmp_path, text))
    assert fault in str(told.value)


def test_all_faults_of_a_script_come_at_once(tmp_path: Path) -> None:
    text = """
    slots = 0
    modelname = "x"
    queue = 1.5
    token = { ms = 1, mean_ms = 2 }
    [answer]
    usage = "sometimes"
    end_mark = 1
    """
    with pytest.raises(ConfigError) as told:
        read_script(written(tmp_path, text))
    said = {fault.where: (fault.problem, fault.expected) for fault in told.value.faults}
    assert said == {
        "slots": ("0 does not fit", "a whole number from 1 to 10000"),
        "modelname": ('unknown key "modelname"', '"model" (did you mean that?)'),
        "queue": ("1.5 does not fit", "a whole number from 0 to 100000"),
        "token": (
            "has mean_ms and ms",
            "ms, or mean_ms, or low_ms and high_ms, or median_ms and sigma",
        ),
        "answer.usage": ('"sometimes" does not fit', "one of always, asked, never"),
        "answer.end_mark": ("1 does not fit", "true or false"),
    }


def test_times_have_their_distribution() -> None:
    rng = random.Random(4)

    def median(spread: Spread) -> float:
        return statistics.median(spread.draw_ns(rng) for _ in range(2_000)) / MS

    assert median(Spread(ms=7)) == 7
    assert median(Spread(low_ms=10, high_ms=20)) == pytest.approx(15, rel=0.05)
    assert median(Spread(mean_ms=10)) == pytest.approx(6.93, rel=0.1)
    assert median(Spread(median_ms=50, sigma=0.5)) == pytest.approx(50, rel=0.08)


async def talk(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    said = await reader.read()
    writer.close()
    await writer.wait_closed()
    return said


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if holds():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it never came to hold")


def post(body: bytes, path: str = "/v1/chat/completions") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (post(b"{"), b"400"),
        (post(b'{"messages": 5}'), b"400"),
        (post(b"{}", "/v1/nothing"), b"404"),
        (b"GET /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", b"405"),
        (b"GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", b"200"),
        (b"hello\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 20_000, b"431"),
        (post(b'{"messages": [{"role": "user", "content": "a b"}]}'), b"200"),
    ],
    ids=["cut", "type", "path", "method", "models", "garbage", "endless", "no-stream"],
)
async def test_who_asks_otherwise_is_told(request_bytes: bytes, status: bytes) -> None:
    script = Script(first_token=Spread(ms=1), token=Spread(ms=0))
    async with CompletionsServer(Serving(script, port=0)) as server:
        said = await talk(server.port, request_bytes)
    assert said.split(b" ")[1] == status
    if b"405" <= status < b"500" or status == b"404":
        assert json.loads(said.rpartition(b"\r\n\r\n")[2])["error"]["message"]


async def test_a_full_queue_refuses_and_who_leaves_frees_its_place() -> None:
    script = Script(first_token=Spread(ms=60_000), slots=1, queue=1)
    asked = post(b'{"stream": true, "messages": []}')
    async with CompletionsServer(Serving(script, port=0)) as server:
        writers = []
        for _ in range(2):
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(asked)
            writers.append(writer)
        await until(lambda: server.stage.waiting == 1)
        assert (await talk(server.port, asked)).split(b" ")[1] == b"429"
        for writer in writers:
            writer.close()
            await writer.wait_closed()
        await until(lambda: not server.open)
        assert server.stage.waiting == 0
        assert not server.stage.slots.locked()


async def test_a_port_that_is_taken_is_told() -> None:
    async with CompletionsServer(Serving(Script(), port=0)) as server:
        with pytest.raises(ReflectorError, match="cannot listen"):
            await CompletionsServer(Serving(Script(), port=server.port)).__aenter__()
