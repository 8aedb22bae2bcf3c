"""What is wrong with options of TLS, before anything is opened.

Words and files, each told of its own option, as the library that is going to be used says it. Where
that one is not installed, what needs it is left to the opening.
"""

from dataclasses import replace

from pathbudget.probes.contract import Options
from pathbudget.probes.errors import Fault
from pathbudget.probes.option_files import no_regular_file, noting
from pathbudget.probes.record import ConnectionMode
from pathbudget.probes.tls.library import choose_library
from pathbudget.probes.tls.settings import TlsSettings, tls_settings

_FILES = {
    "ca_file": "a readable file of certificates in PEM form",
    "client_certificate": "our certificate and its key, unencrypted, in PEM form",
    "client_key": "our certificate and its key, unencrypted, in PEM form",
}
_PROBE = "tls"


def tls_faults(options: Options, mode: ConnectionMode = ConnectionMode.COLD) -> list[Fault]:
    """Faults of `TLS_OPTIONS` among these options, of a client over TCP."""
    faults, sound = file_faults(options)
    settings = tls_settings(options, mode=mode)
    if settings.library == "ssl" and mode is ConnectionMode.EARLY_DATA:
        problem = "Python's ssl module cannot send early data"
        faults.append(Fault(_PROBE, "library", problem, "openssl or auto"))
        settings = replace(settings, mode=ConnectionMode.COLD)
    bare = replace(settings, verify=False, ca_file="", client_certificate="", groups="")
    if sound:
        if settings.ca_file:
            _look(faults, "ca_file", replace(bare, verify=True, ca_file=settings.ca_file))
        if settings.client_certificate:
            own = replace(bare, client_certificate=settings.client_certificate)
            _look(faults, key_option(options), own)
    if settings.groups:
        _look(faults, "groups", replace(bare, groups=settings.groups))
    return faults


def file_faults(options: Options) -> tuple[list[Fault], bool]:
    """Faults of files by their looks, and whether all can be looked into."""
    faults = [
        fault
        for option, expected in _FILES.items()
        if (fault := no_regular_file(options, option, expected, _PROBE)) is not None
    ]
    if options.get("client_key") and not options.get("client_certificate"):
        expected = "a client_certificate, the file that it is the key of"
        faults.append(Fault(_PROBE, "client_key", "there is no certificate for it", expected))
    return faults, not faults


def key_option(options: Options) -> str:
    """The option that faults of a certificate and its key are told of."""
    return "client_key" if options.get("client_key") else "client_certificate"


def _look(faults: list[Fault], option: str, settings: TlsSettings) -> None:
    noting(faults, option, lambda: choose_library(settings), _PROBE)
