"""Mutation testing of the core: small changes are made to it one at a time, and the tests are to notice each."""
