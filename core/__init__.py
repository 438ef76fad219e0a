"""What Flashpoint knows without a database, a broker, a browser or torch."""
