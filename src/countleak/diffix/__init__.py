"""The query system of the paper, rebuilt: restricted SQL in, noisy counts out.

A question goes through these files in this order, and a reader can too:

``parse``     text to a ``statement``: what is allowed, and the words of every refusal;
              ``conditions`` and ``expressions`` are its parts, ``shapes`` makes it fast
``align``     ranges snapped to a grid
``render``    the statement as SQL of our own writing; nothing else reaches the database
``database``  the seam to it: ``duck``, ``postgres``
``layers``    the noise layers of a bucket, each with its seed
``suppress``  buckets of too few people held back
``flatten``   the largest contributions cut to those that follow
``noise``     the Gaussian of a seed
``engine``    all of it, and ``releases`` says how each release did it
"""
