"""What would have been sent, and what it would have cost. Imports ledger and what lies below."""
