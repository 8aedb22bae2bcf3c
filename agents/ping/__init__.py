"""The live view: many hosts at once, as smoke in the terminal or as JSON lines."""
