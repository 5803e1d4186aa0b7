"""What several test files share: oracles, strategies, made-up data, watched noise."""
