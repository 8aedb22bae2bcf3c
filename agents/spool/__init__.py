"""What an agent has measured and nobody has vouched for yet: on its disk, counted to the sample."""
