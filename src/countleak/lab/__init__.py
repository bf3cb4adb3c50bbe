"""The paper and our measurements."""
