"""Where a label on the map may stand without covering another one: greedy, in the order given."""

from dataclasses import dataclass

PIXELS_ACROSS = 760.0
"""Width of the map for which the labels are placed: between a telephone and a desk."""
LETTER = 6.6
LINE = 15.0


@dataclass(frozen=True, slots=True)
class Labelled:
    """One place that wants its name written."""

    text: str
    latitude: float
    longitude: float
    bold: bool


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a label stands beside its place: which side it begins on, and its shift in pixels."""

    anchor: str
    shift_x: float
    shift_y: float


SPOTS = (
    Spot("left", 10, 0),
    Spot("right", -10, 0),
    Spot("left", 6, 15),
    Spot("left", 6, -15),
    Spot("right", -6, 15),
    Spot("right", -6, -15),
    Spot("center", 0, 22),
    Spot("center", 0, -22),
    Spot("left", 10, 28),
    Spot("left", 10, -28),
)

Box = tuple[float, float, float, float]


def placed(items: list[Labelled], spread: tuple[float, float]) -> list[tuple[Labelled, Spot]]:
    """The labels that find room, each with its spot. `spread` is the map in degrees, x and y."""
    scale = PIXELS_ACROSS / spread[0]
    taken: list[Box] = [
        (x - 5, x + 5, y - 5, y + 5) for x, y in (_pixels(item, scale) for item in items)
    ]
    found: list[tuple[Labelled, Spot]] = []
    for item in items:
        for spot in SPOTS:
            box = _box(item, spot, scale)
            if not any(_overlap(box, other) for other in taken):
                taken.append(box)
                found.append((item, spot))
                break
    return found


def _pixels(item: Labelled, scale: float) -> tuple[float, float]:
    return item.longitude * scale, item.latitude * scale


def _box(item: Labelled, spot: Spot, scale: float) -> Box:
    x, y = _pixels(item, scale)
    width = LETTER * len(item.text) + 4
    left = {"left": 0.0, "right": -width, "center": -width / 2}[spot.anchor]
    x, y = x + spot.shift_x + left, y + spot.shift_y
    return x, x + width, y - LINE / 2, y + LINE / 2


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
