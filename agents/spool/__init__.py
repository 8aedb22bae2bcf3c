"""What an agent has measured and nobody has vouched for yet: bounded, and safe against a cut anywhere."""
