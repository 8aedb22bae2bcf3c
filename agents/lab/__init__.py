"""An emulated internet on one machine, the ground truth of the tests."""
