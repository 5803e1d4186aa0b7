"""Pictures (matplotlib, the extra `plot`): each module draws one, and imports it when called."""
