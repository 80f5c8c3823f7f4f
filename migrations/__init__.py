"""The revisions of the database's schema (Alembic). ``vmtune db upgrade`` runs them."""
