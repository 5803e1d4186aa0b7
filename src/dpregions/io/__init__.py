"""Adaptors between the library and the outside: files, databases, GPS traces.

The core imports none of them.
"""
