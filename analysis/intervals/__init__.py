"""Intervals beyond independent samples: block bootstrap, always-valid, sketches, comparisons."""
