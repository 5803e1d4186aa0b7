"""The pictures of the docs. ``make pictures`` draws them again; nothing here is installed."""
