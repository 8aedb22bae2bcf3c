"""A site of a lab is measured like any other: its certificate is vouched for by the lab's file."""

import json
import sys
import time

import pytest

from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.world_file import parse_world

WORLD = """
region = [{name = "tokyo", carrier = "isp", latitude = 35, longitude = 139}]
router = [{name = "core", carrier = "isp", asn = 64500}]
link = [{between = ["tokyo", "core"], delay = "5ms"}, {between = ["core", "dallas"], delay = "5ms"}]
[[site]]
name = "dallas"
carrier = "isp"
latitude = 32
longitude = -97
responder = false
reflector = true
clock = {offset = "5s"}
"""
CLIENT = """
import http.client, json, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[2])
client = http.client.HTTPSConnection(sys.argv[1], 8621, context=context, timeout=10)
client.request("POST", "/upload", body=bytes(60_000))
print(client.getresponse().read().decode())
"""


@pytest.mark.needs("lab")
def test_an_upload_to_a_site_takes_its_flights_and_has_its_clock() -> None:
    with Lab(parse_world(WORLD)) as lab:
        words = [sys.executable, "-c", CLIENT, lab.address_of("dallas"), lab.session().ca_file]
        ran = lab.run("tokyo", words, timeout=30)
        assert ran.returncode == 0, ran.stderr
    receipt = json.loads(ran.stdout)
    assert (receipt["bytes"], receipt["kernel"]) == (60_000, True)
    # 60,000 bytes are more than two initial windows of 10 segments: two round trips of 20 ms.
    spread_ns = receipt["last_unix_ns"] - receipt["first_unix_ns"]
    assert 30_000_000 < spread_ns < 2_000_000_000
    ahead_ns = receipt["last_unix_ns"] - time.time_ns()
    assert 0 < ahead_ns < 5_000_000_000
