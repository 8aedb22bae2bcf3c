"""Which library does the cryptography: Python's own where it can do what is asked for."""

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
    early = settings.mode is ConnectionMode.EARLY_DATA
    if not early and not settings.groups:
        return SslLibrary(settings)
    try:
        from pathbudget.probes.tls.openssl_client import OpenSslLibrary
    except ImportError as error:
        what = "mode early_data" if early else "option groups"
        problem = f"{what} needs pyOpenSSL, which is not installed"
        raise ConfigError([Fault("tls", "", problem, REMEDY)]) from error
    return OpenSslLibrary(settings)
