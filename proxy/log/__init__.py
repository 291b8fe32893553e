"""The log: what happened, in one SQLite file.

`rows` are the values that may be written, `writer` writes them, `restore` reads back what
a restarted proxy needs. `migrations` holds the schema, `database` opens files, `store` has
the statements; `chains` and `redaction` are pure.
"""
