"""Windows under an operator that dies between any two calls, beside another that does not know it was replaced."""
