"""`plan`: errors to expect and a recommendation, from public parameters alone."""
