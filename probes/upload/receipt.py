"""What the sink says of an upload, read with suspicion. Sans-IO."""

from collections.abc import Mapping

import msgspec

from pathbudget.probes.record import Failure, FailureKind, Note, Stage
from pathbudget.probes.reflector_http import UploadReceipt

LONGEST_RECEIPT = 65_536
"""Bytes of an answer that are kept to be read; a receipt has some 150."""
_LARGEST = 1 << 62
_SHOWN = 80
_DECODER = msgspec.json.Decoder(UploadReceipt)


def parse_receipt(data: bytes, sent_bytes: int) -> UploadReceipt | Failure:
    """The receipt of an upload of that many bytes, or what is wrong with it."""
    try:
        receipt = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Failure(FailureKind.PROTOCOL, Stage.PARSE, f"no receipt: {error}"[:_SHOWN])
    times = (receipt.first_unix_ns, receipt.last_unix_ns, receipt.residence_ns)
    if any(abs(number) > _LARGEST for number in times):
        return Failure(FailureKind.CORRUPT, Stage.PARSE, "a receipt with impossible times")
    if receipt.bytes != sent_bytes:
        told = f"the sink has read {receipt.bytes} of {sent_bytes} bytes"[:_SHOWN]
        return Failure(FailureKind.CORRUPT, Stage.PARSE, told)
    if receipt.residence_ns < 0:
        return Failure(FailureKind.CORRUPT, Stage.PARSE, "a receipt that left before it was due")
    return receipt


def receipt_notes(receipt: UploadReceipt) -> Mapping[str, Note]:
    """What a sample keeps of it; `sink_span_ns` is negative where the sink's clock was stepped."""
    return {
        "sink_span_ns": receipt.last_unix_ns - receipt.first_unix_ns,
        "sink_kernel": receipt.kernel,
        "residence_ns": receipt.residence_ns,
    }
