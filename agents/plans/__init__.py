"""Signed plans, the keys they are signed with, and what an agent's own policy lets through."""
