"""Small pieces of a page. Text that comes from data is escaped in ``app.widgets.markup`` and nowhere else."""
