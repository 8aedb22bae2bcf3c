"""What runs on a host that was reached over SSH, out of the bundle."""
