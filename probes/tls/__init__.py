"""TLS 1.3 over TCP (RFC 8446): the client, its tickets, streams on it, and the `tls` probe."""
