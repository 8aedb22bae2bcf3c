"""The one door to the network: the only module of the product's probes that opens sockets."""

from typing import Protocol


class Network(Protocol):
    """What a probe may ask of the operating system."""
