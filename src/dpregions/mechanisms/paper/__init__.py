"""The paper's mechanism: integer noise on every component, an exact order-constrained fit."""
