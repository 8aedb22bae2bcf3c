"""The two files of the demo, written where the user can read, change and run them again."""

from collections.abc import Callable, Mapping
from pathlib import Path

from pathbudget.agents.demo.places import REGIONS, SITES
from pathbudget.probes.record import Target

TLS_INTERVAL = "620ms"
"""Two series per pair, 24 pairs: 77 handshakes per second and 77 samples each in 48 s."""
HEADER = (
    "# Written anew by every `pathbudget demo`: copy it to start from it. docs/campaign.md and\n"
    "# docs/catalogue.md explain the keys.\n"
)


def write_catalogue(path: Path, target: Callable[[str], Target]) -> None:
    """Regions and sites; `target(site)` says where a site answers."""
    lines = [HEADER]
    for region in REGIONS:
        lines += ["[[region]]", f'name = "{region.name}"', f'place = "{region.place}"']
        lines += [f"weight = {region.weight}", ""]
    for site in SITES:
        answers = target(site.name)
        lines += ["[[site]]", f'name = "{site.name}"', f'place = "{site.place}"']
        lines += [f"price_per_month = {site.price_per_month}", f"capacity = {site.capacity}"]
        lines += ["[[site.target]]", f'name = "{answers.name}"', f'host = "{answers.host}"']
        lines += [f"port = {answers.port}", ""]
    path.write_text("\n".join(lines))


def write_campaign(
    path: Path,
    *,
    duration_s: int,
    seed: int,
    vantage: Callable[[str], Mapping[str, str]],
    certificate_authority: str,
    in_lab: bool,
) -> None:
    """One vantage per region; `vantage(region)` says how it is reached."""
    lines = [HEADER, 'name = "demo"', 'catalogue = "catalogue.toml"', f'duration = "{duration_s}s"']
    lines += [f"seed = {seed}", "", "[limits]", "packets_per_second_per_target = 1000", ""]
    for region in REGIONS:
        lines += ["[[vantage]]", f'name = "{region.name}"', f'region = "{region.name}"']
        lines += [f'{key} = "{value}"' for key, value in vantage(region.name).items()]
        lines.append("")
    if in_lab:
        lines += ["[[probe]]", 'kind = "icmp"', 'interval = "250ms"', 'timeout = "1s"', ""]
        lines += ["[[probe]]", 'kind = "stamp"', 'interval = "500ms"', 'timeout = "2s"', ""]
    for mode in ("cold", "resumed"):
        lines += ["[[probe]]", 'kind = "tls"', f'label = "tls-{mode}"', f'mode = "{mode}"']
        lines += [f'ca_file = "{certificate_authority}"', f'interval = "{TLS_INTERVAL}"']
        # Periodic, so that every series surely has the 72 samples that a p95 needs.
        lines += ['schedule = "periodic"', 'timeout = "2s"', ""]
    path.write_text("\n".join(lines))
