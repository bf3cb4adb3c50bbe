"""Diffix on the wire: the rebuilt query system behind PostgreSQL's protocol and REST.

A query over PostgreSQL's protocol goes ``connection``, ``session``, ``workers``, and in another
process ``worker``, ``statements``, ``diffix.engine`` and back.

``wire``           connections accepted, logged in, cancelled and closed
``connection``     a client's messages, and simple queries; ``extended`` the prepared ones
``session``        a served database, and what a client's statements do
``workers``        the processes of a database; ``turns`` whose statement is next
``worker``         such a process; ``requests`` what goes between; ``memory`` its limit
``statements``     statements understood and run, and what the log says of them
``control``        transactions and settings; ``parameters`` values from clients
``results``        what goes back, in PostgreSQL's types; ``errors`` its states
``pg_catalog``     what clients look up about the tables
``rest``           queries over HTTP; ``jobs`` what became of them; ``rest_page`` a description
``http_server``    HTTP connections; ``request_guard`` every request
``users``          who may ask, and how they prove it
``options``        where a server listens, and its limits
``server``         listeners opened, served and closed
``configuration``  what is served to whom, from a TOML file or as a demo; ``loading`` its tables
``background``     a server in a process of its own, for as long as it is needed
"""
