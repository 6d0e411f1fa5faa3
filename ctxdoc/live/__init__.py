"""Questions that ctxdoc asks the API itself. Imports diagnosis and what lies below."""
