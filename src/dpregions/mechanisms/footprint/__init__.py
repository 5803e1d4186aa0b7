"""The footprint mechanism: noise on footprints, which have sensitivity 1."""
