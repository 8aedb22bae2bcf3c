"""Fields one behind the other."""

from pathbudget.probes.bgp.quarantine import MalformedError
from pathbudget.probes.bgp.update_wire import address_text


class Cursor:
    """Takes fields from the front of some bytes. Raises MalformedError when they run out."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        """Bytes that were not taken yet."""
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        end = self.at + size
        if end > len(self.data):
            raise MalformedError("a record that is cut off")
        found = self.data[self.at : end]
        self.at = end
        return found

    def number(self, size: int) -> int:
        """The next `size` bytes as a number, most significant first."""
        return int.from_bytes(self.take(size), "big")

    def address(self, size: int) -> str:
        """The next address, of 4 or 16 octets."""
        return address_text(self.take(size))

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(self.left)
