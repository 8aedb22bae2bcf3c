"""The `token_stream` and `completion` probes: how evenly an answer arrives."""
