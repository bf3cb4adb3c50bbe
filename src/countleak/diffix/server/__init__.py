"""Diffix on the wire: the rebuilt query system behind PostgreSQL's protocol and REST.

``configuration``  what is served to whom, from a TOML file or as a demo
``running``        listeners opened, served and closed; ``limits`` on all of it
``wire``           a PostgreSQL connection: start-up, proof, cancelling; ``frames`` its messages
``portals``        simple and extended queries
``session``        what a statement does: ``statements`` tell its kind, ``settings`` hold SET
``parameters``     values put into a statement; ``values`` as the wire writes them
``catalogue``      what clients look up about tables: ``lookups`` rewritten, for ``system`` tables
                   and their ``entries``
``rest``           queries over HTTP; ``doors`` before it
``users``          who may ask, and how they prove it
``databases``      engines in their thread, with a line in the log a question
``failures``       what a client is told
"""
