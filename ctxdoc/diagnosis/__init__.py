"""Why tokens were not read: a case, its causes, the evidence. Imports replay and what lies below."""
