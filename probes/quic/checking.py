"""What is wrong with options of QUIC, before anything is opened.

Without its libraries only what needs none of them.
"""

from pathbudget.probes.contract import Options
from pathbudget.probes.errors import Fault
from pathbudget.probes.option_files import noting
from pathbudget.probes.quic.settings import quic_settings
from pathbudget.probes.tls.checking import file_faults, key_option


def quic_faults(options: Options) -> list[Fault]:
    """Faults of `QUIC_OPTIONS` among these options."""
    faults, sound = file_faults(options)
    if not sound:
        return faults
    if options.get("ca_file"):
        noting(faults, "ca_file", lambda: _authorities(str(options["ca_file"])), "quic")
    if options.get("client_certificate"):
        noting(faults, key_option(options), lambda: _certificate(options), "quic")
    return faults


def _authorities(file: str) -> None:
    from pathbudget.probes.quic.verifying import Authorities

    Authorities(file)


def _certificate(options: Options) -> None:
    from pathbudget.probes.quic.verifying import load_own_certificate

    load_own_certificate(quic_settings(options))
