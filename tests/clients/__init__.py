"""Programs on real client libraries, started by the tests with and without the proxy.

Each is told where the API is by its environment alone, sends the same each time, and prints nothing.
"""
