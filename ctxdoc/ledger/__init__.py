"""What a log cost: by request, by block, in all. Imports diagnosis and what lies below."""
