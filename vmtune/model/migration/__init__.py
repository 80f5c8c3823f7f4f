"""Live migrations: the record, its states, convergence steps, and who may begin."""
