"""A campaign: the file, the plan that it implies, and the workers that carry the plan out."""
