"""What is written to a scratch file comes back as it was, in as few bytes as hold it."""

from pathlib import Path

import numpy as np
import pytest

from pathbudget.agents.lake.scratch import ScratchWriter, read_blocks
from pathbudget.agents.lake.sorting import Sorted

SENT = 1_772_323_200_000_000_000


def rows(values: list[float], sequence: list[int]) -> Sorted:
    n = len(values)
    sent = np.arange(n, dtype=np.int64) + SENT
    return Sorted(
        np.array([2, 0]), np.array([n - 1, 1]), sent, np.array(sequence), np.array(values)
    )


@pytest.mark.parametrize(
    ("values", "sequence", "bytes_per_row"),
    [
        ([1e6, np.inf, 0.0], [0, 65_535, 3], 14),
        ([2.0**32 - 2, np.inf, 5.0], [0, 65_536, 3], 16),
        ([2.0**32 - 1, np.inf, 5.0], [0, 1, 3], 18),
        ([6e9, np.inf, 5.0], [-1, 2**40, 3], 24),
        ([np.inf, np.inf, np.inf], [-1, 0, 1], 16),
    ],
    ids=["narrow", "long", "sentinel", "wide", "lost"],
)
def test_rows_come_back(
    tmp_path: Path, values: list[float], sequence: list[int], bytes_per_row: int
) -> None:
    writer = ScratchWriter(tmp_path, "task")
    before = rows(values, sequence)
    writer.write(before, [7, 7, 7])
    writer.write(before, [7, 7, 7])
    writer.close()
    assert set(writer.files) == {7}
    assert writer.files[7].path.stat().st_size == 2 * -(-bytes_per_row * len(values) // 8) * 8
    for after in read_blocks(writer.files[7]):
        assert after.values_ns.tolist() == values
        assert after.sequence.tolist() == sequence
        assert after.sent_unix_ns.tolist() == before.sent_unix_ns.tolist()
        assert after.members.tolist() == [2, 0]


def test_each_part_finds_its_rows(tmp_path: Path) -> None:
    writer = ScratchWriter(tmp_path, "task")
    writer.write(rows([1.0, 2.0, 3.0], [1, 2, 3]), [4, 4, 1])
    writer.close()
    found = {part: next(read_blocks(file)) for part, file in writer.files.items()}
    assert found[1].values_ns.tolist() == [1.0, 2.0]
    assert found[4].values_ns.tolist() == [3.0]


def test_a_scratch_file_that_was_cut(tmp_path: Path) -> None:
    writer = ScratchWriter(tmp_path, "task")
    writer.write(rows([1.0, 2.0], [1, 2]), [0, 0, 0])
    writer.close()
    path = writer.files[0].path
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(OSError, match="shorter than what was written"):
        list(read_blocks(writer.files[0]))
