"""What was sent and what came back: requests, answers, counters, logs, the JSON codec. Imports errors only."""
