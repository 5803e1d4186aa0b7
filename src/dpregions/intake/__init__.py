"""Any input of regions -> one bounded convex outline for each user; when two ids are one."""
