"""Inference: from answers to the probability of every bit, whatever noise they went through."""
