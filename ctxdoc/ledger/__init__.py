"""What a log cost, by request, by block, in all; pauses, forecast and advice from it.

Imports diagnosis and what lies below.
"""
