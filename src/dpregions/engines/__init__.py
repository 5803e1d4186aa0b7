"""Where regions are counted: batches of outlines -> tallies -> one tally."""
