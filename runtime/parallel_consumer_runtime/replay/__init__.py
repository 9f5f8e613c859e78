"""Positions shown and moved, and ranges handled once more: what a person does to a group's past, by hand."""
