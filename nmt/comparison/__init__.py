"""Compare recipes under one budget: train them, measure them in the same way, and write a table."""
