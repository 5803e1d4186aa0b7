"""Exact geometry in integers: the grid, its lattice, outlines of bodies, the cells of queries."""
