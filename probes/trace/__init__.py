"""Traces: which way packets of one flow go, hop by hop (start reading at `contract`)."""
