"""Words that agents, collectors and those who watch them share: entries, heartbeats, names."""
