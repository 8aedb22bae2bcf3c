"""The collector: results of a fleet, out of the bus and into a store."""
