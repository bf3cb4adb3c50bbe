"""How well a decoder does on simulated worlds with known secrets."""

import numpy as np

from countleak.attack.transcript import Transcript


def transcript_of(world):
    """What an attacker sees of a world."""
    return Transcript.of(world.queries, world.answers)


def accuracy(decoder, setting, trials=4):
    shares = []
    for number in range(trials):
        world = setting.world(number)
        guess = decoder.decode(transcript_of(world))
        shares.append((guess.values == world.secret).mean())
    return float(np.mean(shares))
