"""Adaptors between files and the library: readers of GPS traces. The core imports none of them."""
