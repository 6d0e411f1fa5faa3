"""The only package that calls the API. Imports diagnosis and what lies below."""
