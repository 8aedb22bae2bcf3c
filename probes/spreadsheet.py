"""Text in a CSV file: what servers, routers and catalogues wrote must not become a formula."""


def harmless(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe goes in front where it would."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
