"""QUIC (RFC 9000, RFC 9001): connections on kernel-stamped datagrams, and the `quic` probe."""
