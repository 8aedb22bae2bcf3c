"""Lines of JSON in a body, as a chunked stream carries them: bytes in, lines out. No socket."""

from pathbudget.probes.stream.lines import LINE_BYTES, LineSplitter


class JsonLineParser:
    """Takes the body in pieces cut anywhere; blank lines between the others say nothing."""

    def __init__(self, *, line_bytes: int = LINE_BYTES) -> None:
        self._lines = LineSplitter(line_bytes)

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes.

        Raises:
            StreamFormatError: a line is longer than the limit.
        """
        return [line for line in self._lines.feed(data) if line.strip()]
