"""Streams of tokens: parsers, times of chunks, the probes `token_stream` and `completion`."""
