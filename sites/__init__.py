"""The place layer: regions, sites, tiers, geodesics and the light floor.

May import: `pathbudget.probes` (for the vocabulary). Start reading at `catalogue.py`.
"""
