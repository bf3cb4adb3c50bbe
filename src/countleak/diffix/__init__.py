"""The query system of the paper, rebuilt: restricted SQL in, noisy counts out.

A question goes through these files in this order, and a reader can too:

``sql.parser``      text to a ``sql.statement``: what is allowed, and the words of every refusal;
                    ``sql.conditions``, ``sql.expressions``, ``sql.functions`` are its
                    parts, ``sql.limits`` and ``sql.magnitude`` the largest it may be
``sql.queries``     the statement as SQL of our own writing; nothing else reaches the database;
                    ``sql.render`` writes its parts
``databases``       the table, in an embedded DuckDB or on a PostgreSQL server
``noise``           the layers of a bucket, their seeds from the ``salt``, and what these draw
``flattening``      the largest contributions to a sum cut to those that follow
``aggregates``      noisy counts, sums and averages of every bucket
``engine``          all of it, and ``releases`` says how each release did it
``explanation``     an answer with its layers, thresholds and true counts, for those who may see
``server``          the engine behind PostgreSQL's protocol and REST
"""
