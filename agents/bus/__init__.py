"""The bus of a fleet: what agents, collectors and operators say to each other through NATS."""
