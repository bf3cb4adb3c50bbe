"""The rows of PostgreSQL's system tables for a database with declared tables and users."""

from collections.abc import Iterable, Sequence
from typing import Any

from countleak.diffix.server.control import KNOWN, REPORTED
from countleak.diffix.server.parameters import OF_KIND
from countleak.diffix.server.pg_catalog.definitions import TYPES, names
from countleak.diffix.sql.sources import SCHEMA
from countleak.diffix.sql.statement import Table

PG_CATALOG, PUBLIC, INFORMATION_SCHEMA = 11, 2200, 13000
OWNER_NAME = "countleak"
OWNER, TABLESPACE, DATABASE, FIRST_TABLE = 10, 1663, 16384, 16385


Rows = list[dict[str, Any]]


def rows_of(database: str, tables: Sequence[Table], users: Sequence[str]) -> dict[str, Rows]:
    """The rows of the system tables for a database with those tables and users."""
    settings = {**KNOWN, **REPORTED}
    return {
        **_of_roles([OWNER_NAME, *users]),
        **_of_database(database),
        **_of_tables(database, tables),
        "pg_tablespace": [{"oid": TABLESPACE, "spcname": "pg_default", "spcowner": OWNER}],
        "pg_am": [{"oid": 2, "amname": "heap", "amtype": "t"}],
        "pg_type": [_type_row(oid) for oid in TYPES],
        "pg_settings": [{"name": name, "setting": value} for name, value in settings.items()],
    }


def _of_roles(roles: Sequence[str]) -> dict[str, Rows]:
    """The owner of the tables, who cannot log in, and the users."""
    never = names("rolsuper rolcreaterole rolcreatedb rolreplication rolbypassrls")
    return {
        "pg_roles": [
            {
                **dict.fromkeys(never, False),
                "oid": OWNER + at,
                "rolname": name,
                "rolinherit": True,
                "rolcanlogin": at > 0,
                "rolconnlimit": -1,
            }
            for at, name in enumerate(roles)
        ],
        "pg_user": [
            {"usesysid": OWNER + at, "usename": name, "usecreatedb": False, "usesuper": False}
            for at, name in enumerate(roles)
        ],
    }


def _of_database(database: str) -> dict[str, Rows]:
    """The database and its schemas."""
    schemas = {PG_CATALOG: "pg_catalog", PUBLIC: SCHEMA, INFORMATION_SCHEMA: "information_schema"}
    return {
        "pg_namespace": [
            {"oid": oid, "nspname": name, "nspowner": OWNER} for oid, name in schemas.items()
        ],
        "information_schema_schemata": [
            {"catalog_name": database, "schema_name": name, "schema_owner": OWNER_NAME}
            for name in schemas.values()
        ],
        "pg_database": [
            {
                "oid": DATABASE,
                "datname": database,
                "datdba": OWNER,
                "encoding": 6,
                "datcollate": "C",
                "datctype": "C",
                "datistemplate": False,
                "datallowconn": True,
                "datconnlimit": -1,
                "dattablespace": TABLESPACE,
            }
        ],
    }


def _of_tables(database: str, tables: Sequence[Table]) -> dict[str, Rows]:
    """The declared tables and their columns."""
    numbered = list(enumerate(tables, FIRST_TABLE))
    return {
        "pg_class": [_class_row(oid, table) for oid, table in numbered],
        "pg_attribute": [row for oid, table in numbered for row in _attributes(oid, table)],
        "pg_tables": [
            {
                "schemaname": SCHEMA,
                "tablename": table.name,
                "tableowner": OWNER_NAME,
                "hasindexes": False,
                "hasrules": False,
                "hastriggers": False,
            }
            for table in tables
        ],
        "information_schema_tables": [
            {
                "table_catalog": database,
                "table_schema": SCHEMA,
                "table_name": table.name,
                "table_type": "BASE TABLE",
                "is_insertable_into": "NO",
            }
            for table in tables
        ],
        "information_schema_columns": list(_described(database, tables)),
    }


def _type_row(oid: int) -> dict[str, Any]:
    name, _, length, category = TYPES[oid]
    return {
        "oid": oid,
        "typname": name,
        "typnamespace": PG_CATALOG,
        "typowner": OWNER,
        "typlen": length,
        "typbyval": 0 < length <= 8,
        "typtype": "b",
        "typcategory": category,
        "typisdefined": True,
        "typdelim": ",",
        "typrelid": 0,
        "typelem": 25 if name == "_text" else 0,
        "typarray": 1009 if name == "text" else 0,
        "typbasetype": 0,
        "typtypmod": -1,
        "typcollation": 0,
        "typnotnull": False,
    }


def _class_row(oid: int, table: Table) -> dict[str, Any]:
    numbers = names("reltype reloftype relfilenode reltablespace reltoastrelid relpages relchecks")
    never = names(
        "relhasindex relisshared relhasrules relhastriggers relhassubclass relrowsecurity "
        "relforcerowsecurity relispartition relhasoids"
    )
    return {
        **dict.fromkeys(numbers, 0),
        **dict.fromkeys(never, False),
        "oid": oid,
        "relname": table.name,
        "relnamespace": PUBLIC,
        "relowner": OWNER,
        "relam": 2,
        "reltuples": -1.0,
        "relpersistence": "p",
        "relkind": "r",
        "relnatts": len(table.columns),
        "relispopulated": True,
        "relreplident": "d",
    }


def _attributes(oid: int, table: Table) -> Iterable[dict[str, Any]]:
    for number, (name, kind) in enumerate(table.columns.items(), 1):
        yield {
            "attrelid": oid,
            "attname": name,
            "atttypid": OF_KIND[kind].oid,
            "attlen": TYPES[OF_KIND[kind].oid][2],
            "attnum": number,
            "attndims": 0,
            "atttypmod": -1,
            "attstorage": "p",
            "attcompression": "",
            "attnotnull": False,
            "atthasdef": False,
            "attidentity": "",
            "attgenerated": "",
            "attisdropped": False,
            "attislocal": True,
            "attinhcount": 0,
            "attcollation": 0,
        }


def _described(database: str, tables: Sequence[Table]) -> Iterable[dict[str, Any]]:
    for table in tables:
        for number, (name, kind) in enumerate(table.columns.items(), 1):
            yield {
                "table_catalog": database,
                "table_schema": SCHEMA,
                "table_name": table.name,
                "column_name": name,
                "ordinal_position": number,
                "is_nullable": "YES",
                "data_type": TYPES[OF_KIND[kind].oid][1],
                "udt_name": TYPES[OF_KIND[kind].oid][0],
            }
