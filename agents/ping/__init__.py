"""The live view: many hosts at once, their distributions drawn as smoke over time."""
