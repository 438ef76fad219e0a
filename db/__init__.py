"""Storage: tables, engine, guarded writes (store) and reads (queries); table rows stay inside this package."""
