"""STAMP (RFC 8762, RFC 8972): wire format, sessions, and the probe. No socket in here."""
