"""DNS over UDP, TCP, TLS, HTTPS and QUIC: questions, answers, and the `dns` probe."""
