"""HTTP: Kafka Connect's REST API, so that tools for Connect work with Heliograph, and Heliograph's own API.

It only translates requests to `heliograph.service`. `docs/rest-api.md` lists the intended differences from Connect.
"""
