"""What this host can claim: measured, judged, and what would improve it.

measuring.py     the same figures twice: with a quiet event loop and with a busy one
examination.py   everything that is known of the host, as one record
claims.py        what may be said of numbers measured here
advice.py        what limits them, and the command that would help
show.py          all that as 80 columns of text
"""
