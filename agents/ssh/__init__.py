"""Campaigns and agents on other hosts, over SSH."""
