"""How well a decoder does on simulated worlds with known secrets."""

import numpy as np


def accuracy(decoder, setting, trials=4):
    shares = []
    for number in range(trials):
        world = setting.world(number)
        guess = decoder.decode(world.transcript)
        shares.append((guess.values == world.secret).mean())
    return float(np.mean(shares))
