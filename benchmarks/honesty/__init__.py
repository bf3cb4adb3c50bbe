"""Whether decoders are honest on systems nobody tuned them for: the battery and its verdicts."""
