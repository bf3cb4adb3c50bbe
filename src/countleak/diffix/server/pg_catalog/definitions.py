"""PostgreSQL's system tables and functions, as far as clients look at them."""

from collections.abc import Mapping

TYPES = {
    # oid: name, name in SQL, length, category
    16: ("bool", "boolean", 1, "B"),
    18: ("char", '"char"', 1, "S"),
    19: ("name", "name", 64, "S"),
    20: ("int8", "bigint", 8, "N"),
    21: ("int2", "smallint", 2, "N"),
    23: ("int4", "integer", 4, "N"),
    25: ("text", "text", -1, "S"),
    26: ("oid", "oid", 4, "N"),
    700: ("float4", "real", 4, "N"),
    701: ("float8", "double precision", 8, "N"),
    1009: ("_text", "text[]", -1, "A"),
    1042: ("bpchar", "character", -1, "S"),
    1043: ("varchar", "character varying", -1, "S"),
    1082: ("date", "date", 4, "D"),
    1114: ("timestamp", "timestamp without time zone", 8, "D"),
    1184: ("timestamptz", "timestamp with time zone", 8, "D"),
    1700: ("numeric", "numeric", -1, "N"),
}


def names(text: str) -> frozenset[str]:
    """The names that a text lists."""
    return frozenset(text.split())


def _columns(text: str) -> dict[str, str]:
    """Columns and their types from a line; a bare name is a BIGINT."""
    pairs = (word.partition(":") for word in text.split())
    types = {
        "": "BIGINT",
        "t": "VARCHAR",
        "b": "BOOLEAN",
        "i": "INTEGER",
        "l": "VARCHAR[]",
        "a": "BIGINT[]",
    }
    return {name: types.get(kind, kind) for name, _, kind in pairs}


SYSTEM_TABLES: Mapping[str, dict[str, str]] = {
    "pg_namespace": _columns("oid nspname:t nspowner nspacl:l"),
    "pg_class": _columns(
        "oid relname:t relnamespace reltype reloftype relowner relam relfilenode reltablespace "
        "relpages:i reltuples:DOUBLE relallvisible:i reltoastrelid relhasindex:b relisshared:b "
        "relpersistence:t relkind:t relnatts:i relchecks:i relhasrules:b relhastriggers:b "
        "relhassubclass:b relrowsecurity:b relforcerowsecurity:b relispopulated:b relreplident:t "
        "relispartition:b relrewrite relfrozenxid relminmxid relacl:l reloptions:l relpartbound:t "
        "relhasoids:b"
    ),
    "pg_attribute": _columns(
        "attrelid attname:t atttypid attstattarget:i attlen:i attnum:i attndims:i "
        "atttypmod:i attbyval:b attalign:t attstorage:t attcompression:t attnotnull:b atthasdef:b "
        "atthasmissing:b attidentity:t attgenerated:t attisdropped:b attislocal:b attinhcount:i "
        "attcollation attacl:l attoptions:l attfdwoptions:l"
    ),
    "pg_type": _columns(
        "oid typname:t typnamespace typowner typlen:i typbyval:b typtype:t typcategory:t "
        "typispreferred:b typisdefined:b typdelim:t typrelid typsubscript typelem typarray "
        "typinput typoutput typreceive typsend typbasetype typtypmod:i typndims:i typcollation "
        "typnotnull:b typdefault:t typacl:l"
    ),
    "pg_database": _columns(
        "oid datname:t datdba encoding:i datcollate:t datctype:t datistemplate:b datallowconn:b "
        "datconnlimit:i dattablespace datacl:l"
    ),
    "pg_roles": _columns(
        "oid rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b "
        "rolreplication:b rolconnlimit:i rolvaliduntil:t rolbypassrls:b rolconfig:l"
    ),
    "pg_user": _columns("usesysid usename:t usecreatedb:b usesuper:b"),
    "pg_am": _columns("oid amname:t amhandler amtype:t"),
    "pg_settings": _columns("name:t setting:t unit:t category:t short_desc:t context:t source:t"),
    "pg_tables": _columns(
        "schemaname:t tablename:t tableowner:t tablespace:t hasindexes:b hasrules:b hastriggers:b"
    ),
    "pg_views": _columns("schemaname:t viewname:t viewowner:t definition:t"),
    "pg_matviews": _columns("schemaname:t matviewname:t matviewowner:t definition:t"),
    # What this server has none of.
    "pg_cursors": _columns("name:t statement:t is_holdable:b is_binary:b is_scrollable:b"),
    "pg_prepared_statements": _columns("name:t statement:t"),
    "pg_stat_activity": _columns("datid datname:t pid usename:t state:t query:t"),
    "pg_locks": _columns("locktype:t database relation pid mode:t granted:b"),
    "pg_attrdef": _columns("oid adrelid adnum:i adbin:t"),
    "pg_auth_members": _columns("roleid member grantor admin_option:b"),
    "pg_collation": _columns("oid collname:t collnamespace collprovider:t"),
    "pg_constraint": _columns(
        "oid conname:t connamespace contype:t condeferrable:b condeferred:b convalidated:b "
        "conrelid contypid conindid conparentid confrelid confupdtype:t confdeltype:t "
        "confmatchtype:t conislocal:b coninhcount:i connoinherit:b conkey:a confkey:a"
    ),
    "pg_db_role_setting": _columns("setdatabase setrole setconfig:l"),
    "pg_depend": _columns("classid objid objsubid:i refclassid refobjid refobjsubid:i deptype:t"),
    "pg_description": _columns("objoid classoid objsubid:i description:t"),
    "pg_shdescription": _columns("objoid classoid description:t"),
    "pg_enum": _columns("oid enumtypid enumsortorder:DOUBLE enumlabel:t"),
    "pg_extension": _columns("oid extname:t extowner extnamespace extversion:t"),
    "pg_foreign_server": _columns("oid srvname:t srvowner srvoptions:l"),
    "pg_foreign_table": _columns("ftrelid ftserver ftoptions:l"),
    "pg_index": _columns(
        "indexrelid indrelid indnatts:i indnkeyatts:i indisunique:b indnullsnotdistinct:b "
        "indisprimary:b indisexclusion:b indimmediate:b indisclustered:b indisvalid:b "
        "indisready:b indislive:b indisreplident:b indkey:a indcollation:a indclass:a indoption:a "
        "indexprs:t indpred:t"
    ),
    "pg_inherits": _columns("inhrelid inhparent inhseqno:i inhdetachpending:b"),
    "pg_language": _columns("oid lanname:t lanowner"),
    "pg_opclass": _columns("oid opcmethod opcname:t opcdefault:b"),
    "pg_partitioned_table": _columns("partrelid partstrat:t partnatts:i partdefid partattrs:a"),
    "pg_policy": _columns(
        "oid polname:t polrelid polcmd:t polpermissive:b polroles:a polqual:t polwithcheck:t"
    ),
    "pg_proc": _columns(
        "oid proname:t pronamespace proowner prolang prokind:t prorettype proargtypes:a"
    ),
    "pg_publication": _columns("oid pubname:t pubowner puballtables:b"),
    "pg_publication_rel": _columns("oid prpubid prrelid"),
    "pg_publication_namespace": _columns("oid pnpubid pnnspid"),
    "pg_range": _columns("rngtypid rngsubtype rngmultitypid rngcollation"),
    "pg_rewrite": _columns("oid rulename:t ev_class ev_type:t ev_enabled:t is_instead:b"),
    "pg_sequence": _columns(
        "seqrelid seqtypid seqstart seqincrement seqmax seqmin seqcache seqcycle:b"
    ),
    "pg_statistic_ext": _columns(
        "oid stxrelid stxname:t stxnamespace stxowner stxstattarget:i stxkeys:a stxkind:l"
    ),
    "pg_tablespace": _columns("oid spcname:t spcowner spcacl:l spcoptions:l"),
    "pg_trigger": _columns(
        "oid tgrelid tgparentid tgname:t tgfoid tgtype:i tgenabled:t tgisinternal:b tgconstrrelid "
        "tgconstrindid tgconstraint tgdeferrable:b tginitdeferred:b"
    ),
    "information_schema_schemata": _columns("catalog_name:t schema_name:t schema_owner:t"),
    "information_schema_tables": _columns(
        "table_catalog:t table_schema:t table_name:t table_type:t is_insertable_into:t"
    ),
    "information_schema_columns": _columns(
        "table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i "
        "column_default:t is_nullable:t data_type:t character_maximum_length:i udt_name:t"
    ),
    "information_schema_views": _columns("table_catalog:t table_schema:t table_name:t"),
}


def _oid_of(table: str, name: str) -> str:
    return (
        f"(SELECT any_value({table}.oid) FROM {table} WHERE {name} = CAST(x AS VARCHAR) OR "
        f"'public.' || {name} = CAST(x AS VARCHAR) OR "
        f"CAST({table}.oid AS VARCHAR) = CAST(x AS VARCHAR))"
    )


_TYPE_NAMES = " ".join(f"WHEN {oid} THEN '{described[1]}'" for oid, described in TYPES.items())
# What look-ups call and is not NULL here; everyone may see all of the tables above.
FUNCTIONS: Mapping[str, str] = {
    "format_type(kind, typmod)": f"CASE kind {_TYPE_NAMES} ELSE '???' END",
    "pg_table_is_visible(x)": "true",
    "pg_type_is_visible(x)": "true",
    "pg_function_is_visible(x)": "true",
    "pg_get_userbyid(x)": "(SELECT any_value(rolname) FROM pg_roles WHERE pg_roles.oid = x)",
    "pg_encoding_to_char(x)": "'UTF8'",
    "pg_relation_is_publishable(x)": "false",
    "pg_relation_size(x)": "0::BIGINT",
    "pg_table_size(x)": "0::BIGINT",
    "pg_total_relation_size(x)": "0::BIGINT",
    "pg_database_size(x)": "0::BIGINT",
    "pg_size_pretty(x)": "CAST(x AS VARCHAR) || ' bytes'",
    "has_table_privilege(x, y, z := '')": "true",
    "has_schema_privilege(x, y, z := '')": "true",
    "has_database_privilege(x, y, z := '')": "true",
    "pg_is_in_recovery()": "false",
    "pg_backend_pid()": "0::BIGINT",
    "pg_tablespace_location(x)": "''",
    "quote_ident(x)": "CAST(x AS VARCHAR)",
    "current_schemas(x)": "CASE WHEN x THEN ['pg_catalog', 'public'] ELSE ['public'] END",
    "current_setting(x, y := false)": (
        "(SELECT any_value(setting) FROM pg_settings WHERE lower(pg_settings.name) = lower(x))"
    ),
    "set_config(x, y, z)": "CAST(y AS VARCHAR)",
    # A name, or a number in quotes, as a cast of a text to regclass and the like reads it.
    "regclass_oid(x)": _oid_of("pg_class", "relname"),
    "regtype_oid(x)": _oid_of("pg_type", "typname"),
    "regnamespace_oid(x)": _oid_of("pg_namespace", "nspname"),
    "regrole_oid(x)": _oid_of("pg_roles", "rolname"),
    # A number, as a cast of a column to them shows it.
    "regclass_name(x)": "(SELECT any_value(relname) FROM pg_class WHERE pg_class.oid = x)",
    "regtype_name(x)": "format_type(x, NULL)",
    "regnamespace_name(x)": (
        "(SELECT any_value(nspname) FROM pg_namespace WHERE pg_namespace.oid = x)"
    ),
    "regrole_name(x)": "(SELECT any_value(rolname) FROM pg_roles WHERE pg_roles.oid = x)",
    "to_regclass(x)": "regclass_oid(x)",
    "to_regtype(x)": (
        "(SELECT any_value(pg_type.oid) FROM pg_type WHERE typname = CAST(x AS VARCHAR) OR "
        "format_type(pg_type.oid, NULL) = CAST(x AS VARCHAR))"
    ),
}
