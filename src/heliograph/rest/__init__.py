"""HTTP: Kafka Connect's REST API, so that what drives Connect drives Heliograph, and our own beside it.

Only words for what `heliograph.service` knows and does. Where answers differ from Connect's on purpose is said in
`docs/rest-api.md`.
"""
