"""Whose an address is, from files of announced prefixes. Start reading at `prefix_table`."""

from pathbudget.sites.prefix_files import load_prefix_table
from pathbudget.sites.prefix_table import Origin, Origins, Prefix, PrefixTable

__all__ = ["Origin", "Origins", "Prefix", "PrefixTable", "load_prefix_table"]
