"""Two Kafka clusters in memory and a clock that jumps: copiers run against them as against real ones, only that every
schedule of requests, crashes and changes can be played, and played again."""
