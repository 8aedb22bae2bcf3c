"""Forms of files: arrays, lines, single results, compressed, cut off, damaged, enormous."""

import bz2
import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.agents.importers.json_blocks import LONGEST, split
from pathbudget.agents.importers.ripe_atlas import ImportReport, Problem, read_results

COUNT = 200


@pytest.fixture
def results(ping: Any) -> list[dict[str, Any]]:
    return [ping(prb_id=number, timestamp=1_600_000_000 + number) for number in range(COUNT)]


def forms(results: list[dict[str, Any]]) -> dict[str, bytes]:
    compact = [json.dumps(result, separators=(",", ":")) for result in results]
    spaced = [json.dumps(result) for result in results]
    pretty = [json.dumps(result, indent=4) for result in results]
    return {
        "lines": "\n".join(spaced).encode(),
        "lines, newline at the end": ("\n".join(compact) + "\n").encode(),
        "lines, blank ones between": "\n\n".join(spaced).encode() + b"\n\n\n",
        "lines, CRLF": "\r\n".join(spaced).encode(),
        "array, compact": f"[{','.join(compact)}]".encode(),
        "array, one a line": ("[" + ",\n".join(spaced) + "\n]\n").encode(),
        "array, pretty": json.dumps(results, indent=2).encode(),
        "array, in two pages": (
            f"[{','.join(compact[:200])}]\n[{','.join(compact[200:])}]"
        ).encode(),
        "values, pretty": "\n".join(pretty).encode(),
        "values, in one line": "".join(compact).encode(),
    }


NAMES = list(forms([{}]))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "mark"])
@pytest.mark.parametrize("packing", ["plain", "gzip", "bzip2", "gzip in members"])
@pytest.mark.parametrize("name", NAMES)
def test_every_form_gives_every_result(
    results: Any, read_bytes: Any, name: str, packing: str, mark: bytes
) -> None:
    content = mark + forms(results)[name]
    half = len(content) // 2
    packed = {
        "plain": content,
        "gzip": gzip.compress(content),
        "bzip2": bz2.compress(content),
        "gzip in members": gzip.compress(content[:half])
        + gzip.compress(content[half:])
        + b"\0" * 9,
    }[packing]
    imported = read_bytes(packed)
    assert [measurement.vantage.name for measurement in imported.measurements] == [
        f"ripe-atlas-probe-{number}" for number in range(COUNT)
    ]
    report = imported.report
    assert (report.results, report.malformed, report.damaged_files) == (COUNT, 0, 0)
    assert report.bytes_read == len(packed)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"[]", b" \n[ ]\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)]
)
def test_an_empty_file_is_empty(read_bytes: Any, content: bytes) -> None:
    report = read_bytes(content).report
    assert (report.results, report.damaged_files) == (0, 0)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_single_result(read_bytes: Any, ping: Any, indent: int | None) -> None:
    assert len(read_bytes(json.dumps(ping(), indent=indent).encode()).measurements) == 1


BROKEN = [
    b"{",
    b'{"type":"ping"',
    b"nonsense",
    b"null",
    b'"ping"',
    b"42",
    b"[1,2]",
    b"{}",
    b"\xff\xfe",
]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_line_is_named_and_the_rest_is_read(
    results: Any, read_bytes: Any, broken: bytes
) -> None:
    lines = [json.dumps(result).encode() for result in results]
    lines.insert(7, broken)
    imported = read_bytes(b"\n".join(lines))
    assert len(imported.measurements) == COUNT
    assert imported.report.malformed == 1
    (problem,) = imported.report.problems
    assert (problem.file, problem.where) == ("results.json", "line 8")
    assert problem.byte_offset == sum(len(line) + 1 for line in lines[:7])


@pytest.mark.parametrize(
    "broken", [b"null", b'"ping, {pong"', b"42", b"[1,2]", b"{}", b'{"a":"}{"}']
)
def test_a_broken_entry_of_an_array_is_named_and_the_rest_is_read(
    results: Any, read_bytes: Any, broken: bytes
) -> None:
    entries = [json.dumps(result).encode() for result in results]
    entries.insert(7, broken)
    content = b"[" + b", ".join(entries) + b"]"
    imported = read_bytes(content)
    assert len(imported.measurements) == COUNT
    assert imported.report.malformed == 1
    (problem,) = imported.report.problems
    assert problem.where == "result 8"
    assert content[problem.byte_offset :].startswith(broken)


def test_brackets_in_strings_are_no_brackets(read_bytes: Any, ping: Any) -> None:
    names = ["a{b", "}", "]{[", 'quo"te{', "back\\slash\\", "},{", "{" * 50]
    results = [ping(dst_name=name) for name in names]
    imported = read_bytes(json.dumps(results).encode())
    assert [measurement.target.host for measurement in imported.measurements] == names


def test_an_entry_that_does_not_end_costs_itself_alone(results: Any, read_bytes: Any) -> None:
    entries = [json.dumps(result) for result in results]
    entries[3] = entries[3][:100]
    imported = read_bytes(f"[{', '.join(entries)}]".encode())
    assert len(imported.measurements) == COUNT - 1
    assert imported.report.malformed == 1


def test_many_entries_that_do_not_end_cost_themselves_alone(ping: Any, read_bytes: Any) -> None:
    entries = [json.dumps(ping(timestamp=1_600_000_000 + number)) for number in range(1000)]
    for number in range(5, 1000, 20):
        entries[number] = entries[number][:60]
    imported = read_bytes(f"[{', '.join(entries)}]".encode())
    assert len(imported.measurements) == 950


def test_a_nested_entry_that_does_not_end_costs_itself_alone(read_bytes: Any) -> None:
    """Its hops begin with the same key as a result does, and are not taken for results."""
    trace = {
        "result": [{"result": [{"rtt": 1.0, "from": "192.0.2.1"}] * 3, "hop": 1}] * 4,
        "type": "traceroute", "msm_id": 1, "prb_id": 2, "timestamp": 3, "fw": 5020,
        "dst_addr": "192.0.2.1",
    }  # fmt: skip
    whole = json.dumps(trace)
    imported = read_bytes(f"[{whole}, {whole[:-40]}, {whole}, {whole}]".encode())
    assert len(imported.measurements) == 3
    assert imported.report.malformed == 1


def test_a_file_cut_off_in_the_middle_of_an_array(results: Any, read_bytes: Any) -> None:
    content = json.dumps(results).encode()
    imported = read_bytes(content[: len(content) // 2])
    whole = len(imported.measurements)
    assert 0.45 * COUNT < whole < 0.55 * COUNT
    assert imported.report.results == whole + 1
    assert imported.report.malformed == 1
    entries = ", ".join(json.dumps(result) for result in results[:10])
    report = read_bytes(f"[{entries}, ".encode()).report
    assert (report.measurements, report.malformed, report.damaged_files) == (10, 0, 1)
    assert "not closed" in str(report.problems[0])


@pytest.mark.parametrize("name", ["lines", "array, compact"])
@pytest.mark.parametrize("packing", ["gzip", "bzip2"])
def test_a_truncated_compressed_file_keeps_what_was_read(
    results: Any, read_bytes: Any, name: str, packing: str
) -> None:
    import random

    rng = random.Random(1)
    for result in results:
        result["noise"] = rng.randbytes(400).hex()
    content = forms(results)[name]
    packed = gzip.compress(content) if packing == "gzip" else bz2.compress(content, 1)
    imported = read_bytes(packed[: len(packed) * 3 // 4])
    assert len(imported.measurements) > COUNT // 4
    assert imported.report.damaged_files == 1
    assert any("cut off" in str(problem) for problem in imported.report.problems)


def test_a_damaged_gzip_file_keeps_what_was_read(results: Any, read_bytes: Any) -> None:
    packed = bytearray(gzip.compress(forms(results)["lines"], 0))
    packed[-5] ^= 0xFF
    imported = read_bytes(bytes(packed))
    assert len(imported.measurements) >= COUNT - 1
    assert any("damaged" in str(problem) for problem in imported.report.problems)


def test_a_file_that_is_not_there_is_a_problem_and_the_others_are_read(
    tmp_path: Path, ping: Any
) -> None:
    good = tmp_path / "good.json"
    good.write_text(json.dumps(ping()))
    problems: list[Problem] = []
    paths = [tmp_path / "missing.json", good]
    measurements = list(read_results(paths, on_problem=problems.append))
    assert len(measurements) == 1
    assert [str(problem) for problem in problems] == ["missing.json: No such file or directory"]


def test_a_line_of_a_probes_own_log_is_told_so(read_bytes: Any) -> None:
    report = read_bytes(b'RESULT { "id":"42", "fw":5020 }\n').report
    assert "a probe's own log" in report.problems[0].reason


@pytest.mark.parametrize("opening", [b"[" * 100_000, b'{"a":' * 100_000])
def test_brackets_nested_too_deep_are_malformed(read_bytes: Any, ping: Any, opening: bytes) -> None:
    good = json.dumps(ping()).encode()
    imported = read_bytes(b"\n".join([good, opening, good]))
    assert len(imported.measurements) == 2
    assert imported.report.malformed == 1


@pytest.mark.parametrize(
    "content",
    [b'{"fw":' * 20_000, b"[" + b'{"fw":' * 20_000, b"{" * 20_000 + b"}" * 20_000],
    ids=["open", "open, in an array", "closed"],
)
def test_brackets_within_brackets_take_no_more_time_than_their_length(
    read_bytes: Any, content: bytes
) -> None:
    """Looked at from each of them to the end, these few kilobytes would take an hour."""
    assert read_bytes(content).report.malformed == 1


@pytest.mark.parametrize("before", [b"", b"["])
def test_a_value_without_end_is_given_up(read_bytes: Any, ping: Any, before: bytes) -> None:
    good = json.dumps(ping()).encode()
    separator = b"," if before else b"\n"
    endless = b'{"fw":1,"dst_name":"' + b"x" * (LONGEST + 500_000)
    content = before + separator.join([good, endless + (b"" if not before else b'"'), good, good])
    imported = read_bytes(content)
    assert len(imported.measurements) == 3
    assert imported.report.malformed == 1
    assert "MiB" in imported.report.problems[0].reason


def peak_memory(path: Path) -> int:
    tracemalloc.start()
    try:
        report = ImportReport()
        count = sum(1 for _ in read_results([path], report=report))
        assert count == report.measurements == report.results > 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", ["lines", "array"])
@pytest.mark.parametrize("packed", [False, True])
def test_memory_is_flat(tmp_path: Path, ping: Any, form: str, packed: bool) -> None:
    """Five times the results need no more memory (benchmarks/ has the full scale)."""
    text = json.dumps(ping(), separators=(",", ":")).encode()
    peaks: list[int] = []
    for count in (2_000, 10_000):
        path = tmp_path / f"{count}"
        texts = [text] * count
        content = b"[" + b",".join(texts) + b"]" if form == "array" else b"\n".join(texts)
        path.write_bytes(gzip.compress(content, 1) if packed else content)
        peaks.append(peak_memory(path))
    assert peaks[1] < 1.3 * peaks[0]
    assert peaks[1] < len(text) * 10_000


@settings(max_examples=60)
@given(
    values=st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=4), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        max_size=12,
    ),
    size=st.integers(1, 40),
    indent=st.sampled_from([None, 1]),
)
def test_an_array_is_split_into_its_values_however_it_is_cut_into_chunks(
    values: list[Any], size: int, indent: int | None
) -> None:
    text = json.dumps(values, indent=indent).encode()
    chunks = (text[start : start + size] for start in range(0, len(text), size))
    damages: list[str] = []
    pieces = [piece for block in split(chunks, damages.append) for piece in block.pieces()]
    assert [json.loads(piece.raw) for piece in pieces] == values
    assert all(text[piece.offset :].startswith(piece.raw) for piece in pieces)
    assert not damages
