"""The command line: one module for each command; `app` puts them together."""
