"""Statistics: numpy in, frozen dataclasses out; knows no database and no screen."""
