"""`Release`: what was published and what it answers; its file; how it is made."""
