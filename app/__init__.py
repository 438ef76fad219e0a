"""The dashboard and the command line. Pages wear one look; see ``app.theme``."""
