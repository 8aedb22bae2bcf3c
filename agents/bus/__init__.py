"""NATS JetStream: server, credentials, and what goes over it."""
