"""Numbers and names of interfaces: how ends of links are told apart, in nodes and the emulator."""

FIRST_INDEX = 1000
"""Our interface indices start here: some kernels put tunnels of their own into a new namespace.
The node's end of link n has index 1000 + n."""


def inner_index(link: int, end: int) -> int:
    """Index of an end of a link in the emulator's namespace; `end` 0 is that of node `a`."""
    return FIRST_INDEX + 2 * link + end


def hardware_address(link: int, end: int) -> bytes:
    """Locally administered address of the node's end of a link."""
    return bytes((2, 0, link >> 8, link & 255, 0, end + 1))


def outer_name(link: int, neighbour: str, parallel: int = 0) -> str:
    """Name of the node's end of a link: the neighbour's, where an interface can be called so.
    Further links to the same neighbour have numbers."""
    plain = all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in neighbour)
    taken = parallel or neighbour in ("lo", "all", "default")
    return neighbour if plain and len(neighbour) <= 15 and not taken else f"link{link}"
