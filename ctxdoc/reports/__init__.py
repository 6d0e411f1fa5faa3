"""Results as reports: what is said, before any decision on how it looks. Imports all but outputs and cli."""
