"""Alembic's entry; ``db.engine.migrate`` hands in the connection, inside its transaction."""

from alembic import context

from db.tables import Row

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Row.metadata,
    render_as_batch=True,  # SQLite changes a table by building it anew
    compare_type=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
