"""The two worlds that the demo can measure: the lab, and loopback where no lab can be."""

import contextlib
from collections.abc import Generator
from pathlib import Path

from pathbudget.agents.demo.files import write_campaign, write_catalogue
from pathbudget.agents.demo.places import region_places, site_places
from pathbudget.probes.record import Target


@contextlib.contextmanager
def lab_world(folder: Path, *, duration_s: int, seed: int) -> Generator[list[str]]:
    """An emulated internet with two carriers, up while the block runs.

    Yields a list that holds, after the block, what the lab says about its own error.
    Raises LabError or PrivilegeError when it cannot start.
    """
    from pathbudget.agents.lab.geography import world_from_places
    from pathbudget.agents.lab.running import Lab

    write_catalogue(folder / "catalogue.toml", lab_target)
    write_campaign(
        folder / "campaign.toml",
        duration_s=duration_s,
        seed=seed,
        vantage=lambda region: {"namespace": f"lab:{region}"},
        certificate_authority="lab:ca",
        in_lab=True,
    )
    said: list[str] = []
    world = world_from_places(region_places(), site_places(), seed=seed)
    with Lab(world) as lab, lab.as_session():
        yield said
        said.append(str(lab.report()))


def lab_target(site: str) -> Target:
    """Where a site of the lab answers: its node, by name."""
    return Target(name=site, host=f"{site}.lab", site=site, port=8443)


@contextlib.contextmanager
def loopback_world(folder: Path, *, duration_s: int, seed: int) -> Generator[list[str]]:
    """The same places on loopback, with delays made in user space by the responders."""
    from pathbudget.agents.loopback.geography import PathModel
    from pathbudget.agents.loopback.world import LoopbackWorld

    # Access networks slow enough that no flight can be taken for the server's own time.
    model = PathModel(access_ms=8.0)
    with LoopbackWorld(region_places(), site_places(), model=model, seed=seed) as world:
        write_catalogue(folder / "catalogue.toml", world.target)
        write_campaign(
            folder / "campaign.toml",
            duration_s=duration_s,
            seed=seed,
            vantage=lambda region: {"source_ipv4": world.source_address(region)},
            certificate_authority=str(world.authority),
            in_lab=False,
        )
        yield []
        world.check()
