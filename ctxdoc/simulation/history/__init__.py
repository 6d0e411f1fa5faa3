"""A session as messages that strategies can edit. Imports what simulation imports."""
