"""Numbers of the kernel's send stamps: never given to another packet, whatever is refused when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.probes.stamped_socket import LONGEST_QUEUED_NS, KeyCount


class Kernel:
    """A socket of a kernel whose device holds packets back: it stamps them as they leave."""

    def __init__(self) -> None:
        self.count = KeyCount()
        self.now_ns = 0
        self._number = 0
        self._queue: list[tuple[int, int]] = []
        self.given: dict[int, int] = {}
        """Our key to the packet whose stamp it got (a packet's stamp is its own key here)."""

    def send(self) -> None:
        if self.count.stamping:
            self._queue.append((self._number, self.count.sent))
            self._number += 1
        self.count.sent += 1

    def leave(self, packets: int) -> None:
        left, self._queue = self._queue[:packets], self._queue[packets:]
        for key, packet in self.count.keys(left):
            assert key not in self.given
            self.given[key] = packet
        if not self.count.stamping and self.count.may_begin(self.now_ns):
            self._number = 0

    def refuse(self, *, counted: bool) -> None:
        if self.count.stamping and counted:
            self._number += 1
        if self.count.refused(self.now_ns):
            self._number = 0


@given(
    st.lists(
        st.one_of(
            st.just("send"),
            st.sampled_from(["refuse", "refuse and count"]),
            st.integers(0, 5),
        ),
        max_size=200,
    )
)
def test_no_packet_gets_the_stamp_of_another(happens: list[str | int]) -> None:
    kernel = Kernel()
    for event in happens:
        kernel.now_ns += 1_000_000
        if isinstance(event, int):
            kernel.leave(event)
        elif event == "send":
            kernel.send()
        else:
            kernel.refuse(counted=event != "refuse")
    kernel.leave(1_000)
    assert all(key == packet for key, packet in kernel.given.items())


def test_a_refusal_while_nothing_waits_costs_no_stamp() -> None:
    kernel = Kernel()
    for _ in range(3):
        kernel.send()
        kernel.leave(1)
        kernel.refuse(counted=True)
    kernel.send()
    kernel.leave(1)
    assert kernel.given == {0: 0, 1: 1, 2: 2, 3: 3}


def test_packets_sent_while_old_stamps_are_due_go_without() -> None:
    kernel = Kernel()
    kernel.send()
    kernel.send()
    kernel.refuse(counted=False)
    kernel.send()
    kernel.leave(2)
    kernel.send()
    kernel.leave(1)
    assert kernel.given == {0: 0, 1: 1, 3: 3}


@pytest.mark.parametrize("late_ns", [0, 1])
def test_a_packet_that_was_dropped_does_not_stop_the_stamps_for_ever(late_ns: int) -> None:
    count = KeyCount()
    count.sent = 1  # and no stamp of it ever comes
    assert not count.refused(0)
    assert not count.may_begin(LONGEST_QUEUED_NS - 1)
    assert count.may_begin(LONGEST_QUEUED_NS + late_ns)
    count.sent = 2
    assert count.keys([(0, 7)]) == [(1, 7)]
