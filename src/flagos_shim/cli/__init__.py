"""The commands: each parses, asks, prints."""
