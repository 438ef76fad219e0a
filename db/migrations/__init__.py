"""Alembic revisions; run by ``db.engine.migrate``."""
