"""Files become requests: sources, archives, message threads; a record does in `formats`. Imports request."""
