"""Wireshark's own dissector of TWAMP-Test reads what we write (STAMP is its successor)."""

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pathbudget.probes.stamp import wire
from pathbudget.probes.stamp.fake_pair import PORT, SENDER_PORT, FakePair
from pathbudget.probes.stamp.timestamps import encode_error

PCAP_HEADER = struct.pack("!IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)  # 101: raw IP


def ipv4(payload: bytes, source: str, destination: str, ports: tuple[int, int]) -> bytes:
    udp = struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload
    addresses = b"".join(bytes(map(int, one.split("."))) for one in (source, destination))
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 255, 17, 0) + addresses
    total = sum(struct.unpack("!10H", head))
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    packet: bytes = head[:10] + checksum.to_bytes(2) + head[12:] + udp
    return packet


def dissect(folder: Path, packets: list[bytes]) -> list[dict[str, Any]]:
    """The fields of each packet, by tshark."""
    path = folder / "stamp.pcap"
    path.write_bytes(
        PCAP_HEADER
        + b"".join(
            struct.pack("!IIII", 1_790_000_000, number, len(one), len(one)) + one
            for number, one in enumerate(packets)
        )
    )
    command = ["tshark", "-r", str(path), "-d", f"udp.port=={PORT},twamp.test", "-T", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [packet["_source"]["layers"] for packet in json.loads(done.stdout)]


@pytest.mark.needs("tshark")
def test_tshark_reads_request_and_reply_and_finds_nothing_malformed(
    pair: FakePair, tmp_path: Path
) -> None:
    pair.sender.claim_clock(1_000_000)
    pair.reflector.claim_clock(2_000_000)
    asked = pair.send()
    answered = pair.must_reflect(asked).payload
    there = ipv4(asked, "192.0.2.100", "192.0.2.1", (SENDER_PORT, PORT))
    back = ipv4(answered, "192.0.2.1", "192.0.2.100", (PORT, SENDER_PORT))
    first, second = dissect(tmp_path, [there, back])
    for layers in (first, second):
        assert "_ws.malformed" not in layers
        assert "twamp.test" in layers
    request, reply = wire.decode_request(asked), wire.decode_reply(answered)
    fields = first["twamp.test"]
    assert int(fields["twamp.test.seq_number"]) == request.sequence
    assert int(fields["twamp.test.error_estimate"], 0) == request.error
    fields = second["twamp.test"]
    assert int(fields["twamp.test.seq_number"]) == reply.sequence
    assert int(fields["twamp.test.sender_seq_number"]) == reply.sender_sequence
    assert int(fields["twamp.test.error_estimate"], 0) == encode_error(2_000_000)
    assert int(fields["twamp.test.sender_error_estimate"], 0) == reply.sender_error
    assert int(fields["twamp.test.sender_ttl"]) == reply.sender_ttl
    assert "Sep 21, 2026" in fields["twamp.test.receive_timestamp"]
    assert "Sep 21, 2026" in fields["twamp.test.sender_timestamp"]
