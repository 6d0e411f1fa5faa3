"""The one cache model: entries, lookup, lifetimes. Imports prompt and tokens."""
