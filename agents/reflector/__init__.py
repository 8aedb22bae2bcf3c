"""The measurement reflector: what a site runs to be measured (STAMP, RFC 8762)."""
