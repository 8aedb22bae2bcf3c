"""DNS over UDP, TCP, TLS, HTTPS and QUIC, and the `dns` probe."""
