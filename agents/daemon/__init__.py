"""The agent that runs for months: a plan in, measurements into the spool, the spool to the uplink."""
