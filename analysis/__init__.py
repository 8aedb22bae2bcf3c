"""The pure layer: samples and sites in, summaries, budget lines and recommendations out.

No socket, no file, no clock. May import `pathbudget.probes` and `pathbudget.sites`.
Start reading at `results.py` (every noun that comes out), then `evaluate.py` (the whole way).
"""
