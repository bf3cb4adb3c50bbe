"""The rows of PostgreSQL's system tables for a database with declared tables and users."""

from collections.abc import Iterable, Sequence
from typing import Any

from countleak.diffix.server.settings import KNOWN, REPORTED
from countleak.diffix.server.system import TYPES, names
from countleak.diffix.sql.statement import Kind, Table

PG_CATALOG, PUBLIC, INFORMATION_SCHEMA = 11, 2200, 13000
OWNER, TABLESPACE, DATABASE, FIRST_TABLE = 10, 1663, 16384, 16385
OF_KIND = {Kind.WHOLE: 20, Kind.NUMBER: 701, Kind.TEXT: 25}


def rows_of(
    database: str, tables: Sequence[Table], users: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of the system tables for a database with those tables and users."""
    roles = ["countleak", *users]
    owner = {"oid": OWNER, "rolname": roles[0]}
    return {
        "pg_namespace": [
            {"oid": oid, "nspname": name, "nspowner": OWNER}
            for oid, name in (
                (PG_CATALOG, "pg_catalog"),
                (PUBLIC, "public"),
                (INFORMATION_SCHEMA, "information_schema"),
            )
        ],
        "pg_roles": [
            {
                **owner,
                "oid": OWNER + at,
                "rolname": name,
                "rolsuper": False,
                "rolinherit": True,
                "rolcreaterole": False,
                "rolcreatedb": False,
                "rolcanlogin": at > 0,
                "rolreplication": False,
                "rolconnlimit": -1,
                "rolbypassrls": False,
            }
            for at, name in enumerate(roles)
        ],
        "pg_user": [
            {"usesysid": OWNER + at, "usename": name, "usecreatedb": False, "usesuper": False}
            for at, name in enumerate(roles)
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
        "pg_tablespace": [{"oid": TABLESPACE, "spcname": "pg_default", "spcowner": OWNER}],
        "pg_am": [{"oid": 2, "amname": "heap", "amtype": "t"}],
        "pg_type": [_type_row(oid) for oid in TYPES],
        "pg_settings": [
            {"name": name, "setting": value} for name, value in {**KNOWN, **REPORTED}.items()
        ],
        "pg_class": [_class_row(FIRST_TABLE + at, table) for at, table in enumerate(tables)],
        "pg_attribute": [
            row for at, table in enumerate(tables) for row in _attributes(FIRST_TABLE + at, table)
        ],
        "pg_tables": [
            {
                "schemaname": "public",
                "tablename": table.name,
                "tableowner": roles[0],
                "hasindexes": False,
                "hasrules": False,
                "hastriggers": False,
            }
            for table in tables
        ],
        "information_schema_schemata": [
            {"catalog_name": database, "schema_name": name, "schema_owner": roles[0]}
            for name in ("pg_catalog", "public", "information_schema")
        ],
        "information_schema_tables": [
            {
                "table_catalog": database,
                "table_schema": "public",
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
            "atttypid": OF_KIND[kind],
            "attlen": TYPES[OF_KIND[kind]][2],
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
                "table_schema": "public",
                "table_name": table.name,
                "column_name": name,
                "ordinal_position": number,
                "is_nullable": "YES",
                "data_type": TYPES[OF_KIND[kind]][1],
                "udt_name": TYPES[OF_KIND[kind]][0],
            }
