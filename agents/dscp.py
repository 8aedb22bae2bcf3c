"""Traffic classes by the names that routers give them (RFC 2474, 2597, 3246, 5865, 8622)."""

NAMES = {
    "df": 0,
    "be": 0,
    "le": 1,
    "va": 44,
    "ef": 46,
    **{f"cs{number}": number << 3 for number in range(8)},
    **{f"af{row}{drop}": row << 3 | drop << 1 for row in range(1, 5) for drop in range(1, 4)},
}
LARGEST = 63
FORM = f"0 to {LARGEST}, EF, CS0 to CS7 or AF11 to AF43"


def parse_dscp(text: str) -> int:
    """46 of ``EF`` or ``46``. Raises ValueError with the form in its text."""
    word = text.strip().lower()
    if word in NAMES:
        return NAMES[word]
    if word.isascii() and word.isdecimal() and len(word) <= 3 and int(word) <= LARGEST:
        return int(word)
    raise ValueError(f"{text!r} is no traffic class: {FORM}")
