"""What published tables give away, measured: on generated people, beside the tools that check."""
