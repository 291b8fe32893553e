"""What a tool's schema and its notes say of the value at one path, however odd the schema is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from scenarios.strict.patterns import is_usable
from scenarios.strict.rules import ABSENT
from scenarios.types import ToolNotes

READABLE_FORMATS = frozenset(
    {"date", "time", "date-time", "datetime", "uri", "url", "uri-reference", "iri", "iri-reference"}
)
"""Formats of text that is compared by a canonical form; text of any other format is exact."""

ID_WORDS = frozenset(
    {
        "id",
        "ids",
        "uid",
        "uids",
        "userid",
        "userids",
        "uuid",
        "uuids",
        "guid",
        "guids",
        "pid",
        "openid",
        "code",
        "codes",
        "sku",
        "skus",
        "isbn",
        "isbns",
        "issn",
        "doi",
        "iban",
        "ibans",
        "bic",
        "hash",
        "hashes",
        "sha",
        "sha1",
        "sha256",
        "md5",
        "checksum",
        "token",
        "tokens",
        "key",
        "keys",
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "secret",
        "secrets",
        "pin",
        "otp",
        "vin",
        "ean",
        "upc",
        "imei",
        "signature",
        "nonce",
        "base64",
        "regex",
        "regexp",
        "filepath",
        "filename",
    }
)
"""Last words of the names of parameters whose text is exact."""

_WORD = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]+|[0-9]+")
_FOLLOWED: Final = 64
"""Schemas looked at for one value; more are a circle or a jungle."""

_ONE_OF = ("anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the arguments of one tool.

    `path` is the notes' spelling (`people[].note`), `name` the key it stands under. All of `schemas`
    apply to the value; of each group in `choices` some apply. They are the place's own schema,
    those that its local references and `allOf` lead to, and the branch where there is one but null.
    """

    root: Any
    notes: ToolNotes
    path: str
    name: str
    schemas: tuple[dict[str, Any], ...]
    choices: tuple[tuple[dict[str, Any], ...], ...]
    nullable: bool

    @property
    def is_free_text(self) -> bool:
        return self.path in self.notes.free_text

    @property
    def is_unordered(self) -> bool:
        return self.path in self.notes.unordered or any(it.get("uniqueItems") is True for it in self.schemas)

    @property
    def is_exact(self) -> bool:
        """Text here means what it means by its very characters."""
        return (
            _is_id(self.name)
            or any(map(_fixes_text, self.schemas))
            or any(all(map(_fixes_text, group)) for group in self.choices)
        )

    @property
    def allowed(self) -> list[Any] | None:
        """The values that an `enum` or a `const` allows; None where there is neither."""
        for schema in self.schemas:
            if isinstance(schema.get("enum"), list):
                return list(schema["enum"])
            if "const" in schema:
                return [schema["const"]]
        return None

    @property
    def types(self) -> frozenset[str]:
        """The JSON types that the schema names, without `null`, `float` as `number`; maybe none."""
        named = {name for schema in self.schemas for name in _types(schema)}
        return frozenset("number" if name == "float" else name for name in named - {"null"})

    def requires(self, key: str) -> bool:
        return any(key in _list(schema.get("required")) for schema in self.schemas)

    def declares(self, key: str) -> bool:
        """The key has a schema of its own, or the object is open: so it is not made up."""
        if any(key in _dict(schema.get("properties")) for schema in self._any_schemas()):
            return True
        if any(_admits_more(schema, key) for schema in self._any_schemas()):
            return True
        # An object parameter that says nothing of its keys is open; a tool without parameters is not.
        return bool(self.path) and not any("properties" in schema for schema in self._any_schemas())

    def member(self, key: str) -> Place:
        found = [
            _dict(schema.get("properties"))[key]
            for schema in self._any_schemas()
            if key in _dict(schema.get("properties"))
        ]
        path = f"{self.path}.{key}" if self.path else key
        return _place(self.root, self.notes, path, key, found)

    def item(self, index: int) -> Place:
        found = [it for schema in self._any_schemas() if (it := _item_schema(schema, index)) is not None]
        return _place(self.root, self.notes, f"{self.path}[]", self.name, found)

    def said_default(self) -> Any:
        """The default that the notes give, else the schema's `default`, else ABSENT."""
        if self.path in self.notes.defaults:
            return self.notes.defaults[self.path]
        return next((schema["default"] for schema in self.schemas if "default" in schema), ABSENT)

    def descriptions(self) -> Iterator[str]:
        for schema in self.schemas:
            if isinstance(schema.get("description"), str):
                yield schema["description"]

    def _any_schemas(self) -> Iterator[dict[str, Any]]:
        yield from self.schemas
        for group in self.choices:
            yield from group


def root_place(parameters: Any, notes: ToolNotes) -> Place:
    return _place(parameters, notes, "", "", [parameters])


def _place(root: Any, notes: ToolNotes, path: str, name: str, found: list[Any]) -> Place:
    schemas: list[dict[str, Any]] = []
    choices: list[tuple[dict[str, Any], ...]] = []
    nullable = False
    waiting = list(found)
    for _ in range(_FOLLOWED):
        if not waiting:
            break
        schema = waiting.pop(0)
        if not isinstance(schema, dict) or any(schema is it for it in schemas):
            continue
        schemas.append(schema)
        nullable = nullable or _allows_null(schema)
        waiting += _list(schema.get("allOf"))
        if "$ref" in schema:
            waiting.append(_referred(root, schema["$ref"]))
        for word in _ONE_OF:
            branches = [_resolved(root, it) for it in _list(schema.get(word))]
            nullable = nullable or any(map(_allows_null, branches))
            others = tuple(it for it in branches if _types(it) != ["null"])
            if len(others) == 1:
                waiting.append(others[0])
            elif others:
                choices.append(others)
    return Place(root, notes, path, name, tuple(schemas), tuple(choices), nullable)


def _resolved(root: Any, schema: Any) -> dict[str, Any]:
    """A branch, its references followed."""
    for _ in range(_FOLLOWED):
        if not isinstance(schema, dict) or "$ref" not in schema:
            break
        schema = _referred(root, schema["$ref"])
    return _dict(schema)


def _referred(root: Any, reference: Any) -> Any:
    """The schema that a local reference `#/...` names; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found = root
    for part in unquote(reference[1:]).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and key.isascii() and int(key) < len(found):
            found = found[int(key)]
        else:
            found = _dict(found).get(key)
    return found


def _allows_null(schema: dict[str, Any]) -> bool:
    return (
        "null" in _types(schema)
        or schema.get("nullable") is True
        or any(value is None for value in _list(schema.get("enum")))
        or schema.get("const", ABSENT) is None
    )


def _types(schema: dict[str, Any]) -> list[str]:
    named = schema.get("type")
    return [it for it in (named if isinstance(named, list) else [named]) if isinstance(it, str)]


def _fixes_text(schema: dict[str, Any]) -> bool:
    if "enum" in schema or "const" in schema or "pattern" in schema:
        return True
    form = schema.get("format")
    return isinstance(form, str) and form.casefold() not in READABLE_FORMATS


def _admits_more(schema: dict[str, Any], key: str) -> bool:
    more = schema.get("additionalProperties", False)
    return more is True or isinstance(more, dict) or _matches_pattern(schema, key)


def _matches_pattern(schema: dict[str, Any], key: str) -> bool:
    for pattern in _dict(schema.get("patternProperties")):
        if is_usable(pattern) and re.search(pattern, key):
            return True
    return False


def _item_schema(schema: dict[str, Any], index: int) -> Any:
    """The schema of an item: `prefixItems` (or `items` as a list, as older drafts have it), else `items`."""
    for word in ("prefixItems", "items"):
        listed = schema.get(word)
        if isinstance(listed, list):
            if index < len(listed):
                return listed[index]
        elif isinstance(listed, dict):
            return listed
    return schema.get("additionalItems")


def _is_id(name: str) -> bool:
    words = _WORD.findall(name)
    if not words:
        return False
    last = words[-1].lower()
    return last in ID_WORDS or last.rstrip("0123456789") in ID_WORDS


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
