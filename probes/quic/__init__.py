"""QUIC (RFC 9000) by aioquic on a stamped socket, and the `quic` probe."""
