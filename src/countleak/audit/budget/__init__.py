"""What a budget of answers gives away, in closed form, and what would have kept it.

``laws`` says what one answer's noise is, ``channel`` what a single person's bit looks like through
it, ``evolution`` how the two settle for each decoder, ``prediction`` which shipped decoder attains
that, ``inverse`` turns the question round, ``privacy`` reads the same budget as differential
privacy, ``advice`` puts it all together.
"""
