"""The demo: a year of real flights, and what comes out of them."""
