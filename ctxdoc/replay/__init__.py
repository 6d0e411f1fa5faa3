"""A log, request by request: what each goes on from, its sizes. Imports cache and what lies below."""
