"""Results as reports, in the values of outputs: how they are told. Imports all but api and cli.

What a cause, a strategy or a limit has to say of itself stands in its own file; here it is put together.
"""
