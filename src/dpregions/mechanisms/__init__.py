"""What makes a private outcome of a secret tally: the paper's mechanism and footprints."""
