"""The bottom layer: the vocabulary, the wire codecs, the probes and the one door to the network.

May import: the standard library and msgspec. Nothing from `sites`, `analysis` or `agents`.
Start reading at `record.py` (every noun of the product), then `contract.py` (what a probe is),
then `icmp.py` (one probe, end to end).
"""
