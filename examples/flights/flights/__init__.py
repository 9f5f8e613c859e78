"""The 336,776 flights that left New York City in 2013, consumed in order per aircraft."""
