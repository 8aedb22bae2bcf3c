"""Everything that runs: command line, campaigns, store, importers, lab."""
