"""Any input of regions -> one bounded convex outline for each user; files of fixes -> fixes."""
