"""GPS fixes -> regions of frequent visitation."""
