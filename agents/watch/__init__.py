"""Who is there, how far behind, how well: status, Prometheus, OpenTelemetry."""
