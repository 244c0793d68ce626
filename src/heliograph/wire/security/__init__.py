"""How a connection becomes a secured one: key stores, TLS, SASL."""
