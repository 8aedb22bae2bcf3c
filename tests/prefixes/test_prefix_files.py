"""Tables of prefixes as files: every form, and what is wrong with them."""

import bz2
import gzip
import io
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import mrtparse
import pytest

from pathbudget.probes.errors import ConfigError
from pathbudget.sites.prefix_files import MOST_FAULTS, texts
from pathbudget.sites.prefixes import Origin, PrefixTable, load_prefix_table

PFX2AS = "8.0.0.0\t8\t3356\n8.8.8.0\t24\t15169_15170\n9.9.9.0\t24\t64500,64501\n2a00::\t16\t6\n"
CSV = "prefix,asn,name\n10.1.0.0/16,AS65011,carrier-a\n80.249.208.0/21,,AMS-IX\n8.0.0.0/8,3356\n"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "prefixes"


def loaded(path: Path, content: bytes) -> PrefixTable:
    path.write_bytes(content)
    return load_prefix_table(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_pfx2as_plain_and_packed(written: Path, pack: Callable[[bytes], bytes]) -> None:
    table = loaded(written, pack(PFX2AS.encode()))
    assert len(table) == 4
    assert table.look_up("8.8.8.8") == Origin("8.8.8.0/24", (15169, 15170))
    assert table.look_up("9.9.9.9") == Origin("9.9.9.0/24", (64500, 64501))
    assert table.look_up("2a00::1") == Origin("2a00::/16", (6,))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_csv(written: Path, separator: str, ending: str) -> None:
    text = CSV.replace(",", separator).replace("\n", ending)
    table = loaded(written, b"\xef\xbb\xbf" + text.encode())
    assert table.look_up("10.1.2.3") == Origin("10.1.0.0/16", (65011,), "carrier-a")
    assert table.look_up("80.249.209.176") == Origin("80.249.208.0/21", (), "AMS-IX")
    assert table.look_up("8.1.1.1") == Origin("8.0.0.0/8", (3356,))
    assert texts(table, ["10.1.0.1", "80.249.209.1", "1.1.1.1"]) == {
        "10.1.0.1": "AS65011 carrier-a",
        "80.249.209.1": "AMS-IX",
    }


def test_comments_and_blank_lines_are_passed_over(written: Path) -> None:
    assert len(loaded(written, b"# mine\n\n8.0.0.0/8,1\n")) == 1


def test_the_later_file_counts(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("8.0.0.0/8,1\n9.0.0.0/8,1\n")
    two.write_text("8.0.0.0/8,2\n")
    table = load_prefix_table(one, two)
    assert [origin and origin.asns for origin in table.look_up_all(["8.1.1.1", "9.1.1.1"])] == [
        (2,),
        (1,),
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("8.0.0.0/33,1", "'33' is no length"), ("8.0.0.1/8,1", "bits behind its length"),
        ("8.0.0/8,1", "is no address"), ("8.0.0.0/8,x", "'x' is no AS number"),
        ("8.0.0.0/8,4294967296", "is no AS number"), ("8.0.0.0,1", "is no prefix"),
        ("8.0.0.0\t33\t1", "is no length"), ("8.0.0.0 8 AS", "is no AS number"),
        ("8.0.0.0/²,1", "is no length"), ("<html>", "is no prefix"),
        ("8.0.0.0/8,\r1", "is no line of a table"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_named(written: Path, line: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(written, f"9.0.0.0/8,1\n{line}\n".encode())
    assert f"{written}: line 2: " in str(caught.value)
    assert words in str(caught.value)


def test_no_more_than_a_few_faults_are_named(written: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(written, b"1/x\n" * 1000)
    assert len(caught.value.faults) == MOST_FAULTS


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no prefix in it"), (b"# nothing\n", "no prefix in it"),
        (gzip.compress(b"8.0.0.0/8,1\n" * 99, mtime=0)[:-9], "cut off"),
        (bz2.compress(b"8.0.0.0/8,1\n" * 99)[:-9], "cut off"),
        (bytes.fromhex("5f0000000010000400000000"), "updates of BGP"),
        (bytes.fromhex("5f000000000d000100000000"), "no route in it"),
    ],
)  # fmt: skip
def test_a_file_without_a_table_is_refused(written: Path, content: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        loaded(written, content)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_prefix_table(tmp_path / "nothing")


def independent(path: Path) -> dict[str, set[int]]:
    """Prefix to origins, by mrtparse."""
    found: dict[str, set[int]] = {}
    raw = path.read_bytes()
    content = gzip.decompress(raw) if path.suffix == ".gz" else raw
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record in mrtparse.Reader(io.BytesIO(content)):
            data = record.data
            kind = next(iter(data["type"]))
            if kind == 12:
                entries = [(data["prefix"], data["length"], data["path_attributes"])]
            elif kind == 13 and "rib_entries" in data and "prefix" in data:
                entries = [
                    (data["prefix"], data["length"], entry["path_attributes"])
                    for entry in data["rib_entries"]
                ]
            else:
                continue
            for network, bits, attributes in entries:
                found.setdefault(f"{network}/{bits}", set()).update(last_hop(attributes))
    return {prefix: origins for prefix, origins in found.items() if origins}


def last_hop(attributes: list[dict[str, object]]) -> set[int]:
    for attribute in attributes:
        kind = next(iter(attribute["type"]))  # type: ignore[call-overload]
        segments = attribute["value"]
        if kind == 2 and segments:
            last = segments[-1]  # type: ignore[index]
            is_set = next(iter(last["type"])) == 1
            return set(map(int, last["value"] if is_set else last["value"][-1:]))
    return set()


@pytest.mark.needs("data")
@pytest.mark.parametrize(
    "name", ["mrtparse__openbgpd_rib_table-v2", "bgpdump__bview.64k_stream_overflow.gz"]
)
def test_dumps_of_tables_as_an_independent_reader_reads_them(shared_data: Path, name: str) -> None:
    path = shared_data / "bgp" / "mrt" / name
    table = load_prefix_table(path)
    expected = independent(path)
    checked = Counter[bool]()
    for prefix, origins in expected.items():
        found = table.look_up(prefix.partition("/")[0])
        inside = found is not None and found.prefix == prefix
        checked[inside] += 1
        if inside:
            assert found is not None
            assert set(found.asns) == origins
    assert len(table) == len(expected)
    assert checked[True] > 0.5 * len(expected)
    assert table.cautions == ()
