"""The data that ships: regions, sites and tiers, each entry with its source and date."""
