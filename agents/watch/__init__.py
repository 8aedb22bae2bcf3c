"""Ways to look at a fleet from outside: Prometheus, OpenTelemetry, and `pathbudget status`."""
