"""What somebody must be told of, whom, and when it is over."""
