"""Terms of the budget out of OpenTelemetry traces: files, and a receiver."""
