"""The agent that runs for months: a plan, a spool, an uplink."""
