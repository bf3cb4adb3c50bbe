"""PostgreSQL's system tables, as far as clients look at them; made by hand, without any data.

``definitions``  the tables, their columns, and functions over them
``rows``         what they hold for the declared tables and users
``rewriting``    a look-up checked against lists and written for the database that holds them
``catalog``      that database, and the answers to look-ups
"""
