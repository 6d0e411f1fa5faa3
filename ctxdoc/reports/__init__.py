"""Results as reports, in the values of outputs: each sentence is written here. Imports all but api and cli."""
