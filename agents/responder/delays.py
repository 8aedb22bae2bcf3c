"""Round trips made in user space: a stand-in for distance where no namespaces can be made.

A real site has no use for this. The loopback world (docs/responder.md) gives the responder a file

    {"seed": 7, "pairs": [{"source": "127.1.0.1", "destination": "127.2.0.1",
                           "minimum_ms": 20.0, "variation_ms": 1.0, "loss": 0.01}]}

and each flight of TLS towards that source is held back by one draw of

    delay = minimum + variation * E,   E exponential with mean 1

so that quantile p of the model is ``minimum - variation * ln(1 - p)``. A lost connection is one
whose ClientHello is never answered. Nothing here delays the SYN-ACK: the kernel answers that.
"""

import math
import random
from pathlib import Path

import msgspec

from pathbudget.probes.errors import ConfigError, Fault


class PairDelay(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The model of one pair. Times are milliseconds of a whole round trip, `loss` is 0 to 1."""

    source: str
    destination: str
    minimum_ms: float
    variation_ms: float = 0.0
    loss: float = 0.0

    def __post_init__(self) -> None:
        for name in ("minimum_ms", "variation_ms"):
            value = getattr(self, name)
            if not 0 <= value <= 60_000:
                raise ValueError(f"{name} is {value}; expected 0 to 60000")
        if not 0 <= self.loss <= 1:
            raise ValueError(f"loss is {self.loss}; expected 0 to 1")

    def quantile_ms(self, p: float) -> float:
        """Quantile `p` (0 <= p < 1) of the delay that is defined here."""
        return self.minimum_ms - self.variation_ms * math.log1p(-p)


class DelayFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file of delays holds: every pair once, and the seed of the draws."""

    pairs: tuple[PairDelay, ...]
    seed: int = 0


class Delays:
    """Draws from the models of a file. Each pair has a generator of its own."""

    def __init__(self, file: DelayFile) -> None:
        self._pairs = {(pair.source, pair.destination): pair for pair in file.pairs}
        self._random = {key: random.Random(f"{file.seed} {key[0]} {key[1]}") for key in self._pairs}

    def lost(self, source: str, destination: str) -> bool:
        """Whether this connection is one that is never answered."""
        key = (source, destination)
        return key in self._pairs and self._random[key].random() < self._pairs[key].loss

    def seconds(self, source: str, destination: str) -> float:
        """How long the next flight is held back; 0 for a pair that the file does not know."""
        key = (source, destination)
        if key not in self._pairs:
            return 0.0
        return self._pairs[key].quantile_ms(self._random[key].random()) / 1000


NO_DELAYS = Delays(DelayFile(()))


def read_delays(path: Path) -> Delays:
    """Read a file of delays. Raises ConfigError with the place of the fault."""
    form = "seed and pairs, as in docs/responder.md"
    try:
        return Delays(msgspec.json.decode(path.read_bytes(), type=DelayFile))
    except OSError as error:
        raise ConfigError([Fault(str(path), "", error.strerror or str(error), form)]) from error
    except msgspec.DecodeError as error:
        message, _, where = str(error).partition(" - at ")
        raise ConfigError([Fault(str(path), where.strip("`"), message, form)]) from error
