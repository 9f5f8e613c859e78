"""Turns ParallelConsumer objects into pods."""
