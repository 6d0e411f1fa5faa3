"""The prompt that the cache sees: segments, chained keys, comparison. Imports request and providers."""
