"""The one cache model: entries, lookup, and when they end; how long a TTL is, providers state.

Imports prompt, tokens, providers and request.
"""
