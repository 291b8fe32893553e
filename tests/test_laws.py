"""The laws that hold the parts together: who imports whom, what is pure, what a help text costs."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT = {
    "scenarios": {"scenarios"},
    "scoring": {"scenarios", "scoring"},
    "proxy": {"scenarios", "proxy"},
    "run_proxy": {"proxy", "scenarios", "scoring"},
}
"""Which of our packages each may import; the composition root joins them."""

SHELL = {
    "scoring/*cli.py": "the commands",
    "scoring/logs/*.py": "the reader of logs",
}
"""The modules of `scenarios` and `scoring` that are not pure, and what they are."""

PURE_IN_PROXY = (
    "proxy/play.py",
    "proxy/sentinel.py",
    "proxy/conversation.py",
    "proxy/settings.py",
    "proxy/drive/agent.py",
    "proxy/wire/*.py",
    "proxy/log/chains.py",
    "proxy/log/redaction.py",
    "proxy/log/rows.py",
    "proxy/simulate/conversation.py",
    "proxy/simulate/mistakes.py",
    "proxy/simulate/place.py",
    "proxy/simulate/policies.py",
    "proxy/simulate/replay.py",
    "proxy/simulate/reply.py",
)
"""What must be pure in `proxy`; a module that says so of itself is held to it too."""

IMPURE = {
    "aiohttp",
    "asyncio",
    "click",
    "httpx",
    "openai",
    "os",
    "random",
    "secrets",
    "socket",
    "sqlite3",
    "sqlite_utils",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "urllib.request",
    "uuid",
}
"""What a pure module has no use for: the network, storage, the clock, chance, the environment."""

CATCHES_ALL = {
    "proxy/app.py": "the request boundary",
    "proxy/log/writer.py": "the writer thread",
    "proxy/drive/worker.py": "what an agent's function raises",
}
"""Where `except Exception` may end an error, and why. Elsewhere it may only pass it on."""

DECLARATION = re.compile(r"^(?:async )?(?:function|const|let)\*? (\w+)", re.MULTILINE)
"""What a script declares in the scope that it shares."""

HEAVY = {"aiohttp", "jieba", "jsonschema", "numpy", "openai", "referencing", "scipy", "sqlite_utils"}
"""Libraries that would make every help text slow."""

INLINE = {
    "run_proxy.py": "the composition root loads what a command needs",
    "*cli.py": "commands load what they need when they run",
    "proxy/drive/choose.py": "the OpenAI SDK is costly, and only the builtin agent needs it",
    "proxy/log/migrations.py": "sqlite-utils is costly, and only a log of an older version needs it",
    "scenarios/similarity.py": "jieba is costly and seldom needed",
    "scoring/metrics/statistics.py": "scipy is costly and seldom needed",
}
"""Where imports may stand inside functions, and why."""


def source_files() -> list[Path]:
    folders = [ROOT / package for package in ("proxy", "scenarios", "scoring")]
    return [ROOT / "run_proxy.py", *sorted(path for folder in folders for path in folder.rglob("*.py"))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=name_of(path))


def imported(path: Path, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that is imported, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: imports are absolute"
            yield node.lineno, node.module or ""
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def is_one_of(path: Path, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name_of(path), pattern) for pattern in patterns)


def says_it_is_pure(path: Path) -> bool:
    return re.search(r"\bPure[.:;]", ast.get_docstring(tree_of(path)) or "") is not None


def is_pure(path: Path) -> bool:
    relative = path.relative_to(ROOT)
    if relative.parts[0] == "proxy":
        return is_one_of(path, PURE_IN_PROXY) or says_it_is_pure(path)
    return len(relative.parts) > 1 and not is_one_of(path, SHELL)


def commands(context: click.Context) -> Iterator[list[str]]:
    """The words of each command, the group's own (none) first."""
    yield context.command_path.split()[1:]
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from commands(click.Context(command, info_name=name, parent=context))


FILES = source_files()
PURE = [path for path in FILES if is_pure(path)]
COMMANDS = list(commands(click.Context(import_module("run_proxy").main, info_name="wildproxy")))


def test_a_package_imports_only_the_packages_below_it() -> None:
    wrong = [
        f"{name_of(path)}:{line} imports {name}"
        for path in FILES
        for line, name in imported(path, tree_of(path))
        if (ours := name.split(".")[0]) in MAY_IMPORT
        and ours not in MAY_IMPORT[module_of(path).split(".")[0]]
    ]
    assert wrong == []


def test_every_module_that_a_law_names_exists() -> None:
    named = (*PURE_IN_PROXY, *SHELL, *CATCHES_ALL, *INLINE)
    assert [pattern for pattern in named if not any(is_one_of(path, [pattern]) for path in FILES)] == []


def test_pure_modules_import_no_network_storage_clock_or_chance() -> None:
    wrong = {
        f"{name_of(path)}:{line} imports {name}"
        for path in PURE
        for line, name in imported(path, tree_of(path))
        if name in IMPURE or name.split(".")[0] in IMPURE
    }
    assert wrong == set()


def test_pure_modules_do_not_ask_what_time_it_is() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in PURE
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"now", "utcnow", "today"}
    ]
    assert wrong == []


def test_pure_modules_load_only_pure_modules_of_ours() -> None:
    """A type may be named under `if TYPE_CHECKING:`, which loads nothing."""
    packages = {module_of(path) for path in FILES if path.name == "__init__.py"}
    shell = {module_of(path) for path in FILES} - {module_of(path) for path in PURE} - packages
    wrong = [
        f"{name_of(path)}:{line} imports {name}"
        for path in PURE
        for line, name in imported(path, without_type_checking(tree_of(path)))
        if name in shell
    ]
    assert wrong == []


def without_type_checking(tree: ast.Module) -> ast.Module:
    def is_for_types(node: ast.stmt) -> bool:
        return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"

    return ast.Module([node for node in tree.body if not is_for_types(node)], tree.type_ignores)


def test_nothing_swallows_every_exception_but_the_two_places_that_must() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        if not is_one_of(path, CATCHES_ALL)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and catches_all(node) and not passes_on(node)
    ]
    assert wrong == []


def catches_all(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(
        isinstance(node, ast.Name) and node.id in {"Exception", "BaseException"}
        for node in ast.walk(handler.type)
    )


def passes_on(handler: ast.ExceptHandler) -> bool:
    """It cleans up and raises what it caught."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_imports_stand_at_the_top_but_for_costly_ones() -> None:
    wrong = [
        f"{name_of(path)}:{line} imports {name}"
        for path in FILES
        if not is_one_of(path, INLINE)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for line, name in imported(path, node)
    ]
    assert wrong == []


def test_every_module_says_what_it_is_for() -> None:
    assert [name_of(path) for path in FILES if not ast.get_docstring(tree_of(path))] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """So that every module can be imported first."""
    names = {module_of(path) for path in FILES}
    graph = {module_of(path): set(imported_at_once(tree_of(path).body)) & names for path in FILES}
    try:
        TopologicalSorter({name: found - {name} for name, found in graph.items()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def imported_at_once(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """What is imported as soon as a module is, by statements at its top or within an `if` or a `try`."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield statement.module or ""
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)
        elif isinstance(statement, ast.Try):
            yield from imported_at_once(statement.body)
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" not in ast.dump(statement.test):
            yield from imported_at_once([*statement.body, *statement.orelse])


def test_no_help_text_needs_a_heavy_library() -> None:
    program = f"""
import json, sys
from click.testing import CliRunner
from run_proxy import main
shown = {{}}
for words in json.load(sys.stdin):
    result = CliRunner().invoke(main, [*words, "--help"])
    loaded = sorted({{m.split(".")[0] for m in sys.modules}} & {HEAVY!r})
    shown[" ".join(words)] = [result.exit_code, "Usage: " in result.output, loaded]
print(json.dumps(shown))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        input=json.dumps(COMMANDS),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {" ".join(words): [0, True, []] for words in COMMANDS}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_and_option_has_a_help_text(words: list[str]) -> None:
    context = click.Context(import_module("run_proxy").main)
    for word in words:
        assert isinstance(context.command, click.Group)
        command = context.command.get_command(context, word)
        assert command is not None
        context = click.Context(command, info_name=word, parent=context)
    assert context.command.help
    # What these two choose is said by their choices.
    unexplained = [
        param.opts[0]
        for param in context.command.params
        if isinstance(param, click.Option)
        and not param.help
        and param.opts[0] not in ("--format", "--scorer")
    ]
    assert unexplained == []


def test_every_command_in_the_table_is_there_under_its_name() -> None:
    root = import_module("run_proxy")
    context = click.Context(root.main)
    assert {name: root.main.get_command(context, name).name for name in root.COMMANDS} == {
        name: name for name in root.COMMANDS
    }


@pytest.mark.parametrize("page", ["scoring/page/assets/report", "proxy/ui/assets"])
def test_scripts_that_share_a_scope_declare_each_name_once(page: str) -> None:
    """A second function of a name would take the place of the first, and nobody would be told."""
    scripts = [*ROOT.glob("scoring/page/assets/components/*.js"), *(ROOT / page).glob("*.js")]
    declared = [
        name
        for script in scripts
        for name in re.findall(
            r"^(?:async )?(?:function|const|let)\*? (\w+)", script.read_text("utf-8"), re.M
        )
    ]
    assert len(declared) > 50
    assert [name for name, count in Counter(declared).items() if count > 1] == []
