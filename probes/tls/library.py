"""Which library does the cryptography: pyOpenSSL where it is installed, else Python's own `ssl`.

One library for all modes, so that they differ in nothing else. `ssl` can neither send early data
nor choose groups, and in Python 3.11 each look at a session leaks some kilobytes of it.
"""

from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.record import ConnectionMode
from pathbudget.probes.tls.client import SslLibrary
from pathbudget.probes.tls.client_side import TlsLibrary
from pathbudget.probes.tls.settings import TlsSettings

REMEDY = "pip install 'pathbudget[request]'"


def choose_library(settings: TlsSettings) -> TlsLibrary:
    """The library for these settings.

    Raises:
        ConfigError: it is not installed, or a file or word of the settings cannot be used.
    """
    needed = _needed_by(settings)
    if settings.library == "ssl":
        if settings.groups:
            problem = "Python's ssl module cannot choose groups"
            raise ConfigError([Fault("tls", "groups", problem, "library openssl or auto")])
        return SslLibrary(settings)
    try:
        from pathbudget.probes.tls.openssl_binding import MISSING
        from pathbudget.probes.tls.openssl_client import OpenSslLibrary
    except ImportError as error:
        if not needed:
            return SslLibrary(settings)
        problem = f"{needed} needs pyOpenSSL, which is not installed"
        raise ConfigError([Fault("tls", "", problem, REMEDY)]) from error
    return SslLibrary(settings) if MISSING and not needed else OpenSslLibrary(settings)


def _needed_by(settings: TlsSettings) -> str:
    if settings.mode is ConnectionMode.EARLY_DATA:
        return "mode early_data"
    if settings.groups:
        return "option groups"
    return "library openssl" if settings.library == "openssl" else ""
