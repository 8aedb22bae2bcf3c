"""The demo: an emulated internet, a campaign over it, budget lines, a recommendation, a report."""
