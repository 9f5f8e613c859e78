"""Commit metadata that nobody wrote in earnest: the decoder against a slow reader of the format, with coverage as guide."""
