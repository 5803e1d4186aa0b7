"""Files and databases of regions -> one stream of Arrow batches: one adaptor for each kind."""
