"""Alerts: what evidence says of each subject now, and what of that is told to people, and when.

    evidence -> signals (one per rule and subject)        evidence.py, a module per kind
             -> states: pending, firing, over               states.py
             -> notices, gathered by rule                   gathering.py

Pure: times are given, nothing is read, sent or kept here. Start with model.py. docs/alerts.md has
the rules for users.
"""
