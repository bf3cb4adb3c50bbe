"""What an attacker can do with answers; never sees the truth."""
