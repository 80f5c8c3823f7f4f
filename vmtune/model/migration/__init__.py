"""Live migrations: the record, its states, convergence steps, and admission."""
