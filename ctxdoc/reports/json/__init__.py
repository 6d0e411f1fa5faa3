"""The versioned JSON documents, one file each. Imports what reports imports."""
