"""A small OpenAI-compatible server with scripted timing: what `completion` probes are tested on."""
