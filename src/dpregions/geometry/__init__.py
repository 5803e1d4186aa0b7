"""Exact geometry in integers: grid, lattice, outlines of bodies, cells of queries."""
