"""ctxdoc: why a prompt cache is dead, what a context costs, and what would help."""

__version__ = "0.1.0"
