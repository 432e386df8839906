"""Strict YAML: the subset used by recipes."""

import re
from typing import Any

import yaml

from nmt.errors import UsageError


class StrictLoader(yaml.SafeLoader):
    """Loads the core types of YAML 1.2 only: `no` and dates are text, `1e-3` is a number.

    Duplicate keys, tags and aliases are errors. Nested aliases could make a short text exceed all memory.
    """

    yaml_implicit_resolvers = {}  # noqa: RUF012 -- PyYAML's own way to start without YAML 1.1's types

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.tag is not None:
            problem = "aliases (*name) and tags (!name) are not read here; write the value itself"
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            problem = None
            if not isinstance(key, yaml.ScalarNode):
                problem = "a key must be a word, not a list or a mapping"
            elif key.value in keys:
                problem = f"the key '{key.value}' occurs twice"
            if problem is not None:
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            keys.add(key.value)
        return super().construct_mapping(node, deep)


class StrictDumper(yaml.SafeDumper):
    """Quotes text that the loader would read as another type."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 -- as in the loader


for _tag, _pattern, _first in (
    ("null", r"^(?:null|~|)$", ["n", "~", ""]),
    ("bool", r"^(?:true|false)$", ["t", "f"]),
    ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    ("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
):
    for _class in (StrictLoader, StrictDumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


StrictLoader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))  # 012 is twelve, not octal


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML text; `where` names it in error messages. Raises UsageError."""
    try:
        return yaml.load(text, StrictLoader)  # noqa: S506 -- a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{where}{line}: {error.problem}.") from None
    except RecursionError:
        raise UsageError(f"{where}: not valid YAML (it is nested too deeply).") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise UsageError(f"{where}: not valid YAML ({str(error).splitlines()[0]}).") from None


def dump_yaml(tree: Any) -> str:
    """Write a value as YAML; `parse_yaml` reads it back unchanged."""
    return yaml.dump(tree, Dumper=StrictDumper, sort_keys=False, allow_unicode=True, width=120)
