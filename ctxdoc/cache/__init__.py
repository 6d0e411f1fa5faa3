"""The one cache model: entries, lookup, lifetimes (TTL). Imports prompt and tokens."""
