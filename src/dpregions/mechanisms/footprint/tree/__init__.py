"""The adaptive tree: counts of regions that open where noisy counts say that it pays."""
