"""Budget, unit, neighbour relation, sensitivity, noise and its law, and the ledger."""
