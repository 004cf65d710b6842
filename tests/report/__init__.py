"""Reports on releases."""
