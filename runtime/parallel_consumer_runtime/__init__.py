"""Runs one member of a group: many records of a partition at a time, in key order, losing nothing."""

__version__ = "0.1.0"
