"""Writes the API reference, one page per public module, from the docstrings: ``python docs/write_reference.py``."""

import dataclasses
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_args

import offmap

FOLDER = Path(__file__).parent / "reference"
# Contracts and results that users subclass or receive; all else comes from the public packages.
CONTRACT = {
    "base": ("Detector", "OpenSetClassifier"),
    "collaborative.base": ("EntityDetector",),
    "verdict": ("Verdict",),
}
PACKAGES = (
    *("openset", "density", "collaborative", "calibration", "scores", "metrics", "explain", "monitor", "loop", "data"),
    *("scale", "export", "report", "dependence", "dependence.disentangle", "dependence.views", "sampling"),
    "sampling.rl",
)
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Reference|Example):[ \n]", re.MULTILINE)
# What scikit-learn adds to every estimator for the routing of metadata.
_ROUTING = re.compile(r"set_\w+_request")


class Docstring(NamedTuple):
    """A docstring in parts: the text before the first section, and the text of each section."""

    text: str
    sections: dict[str, str]

    @classmethod
    def of(cls, item: Any) -> "Docstring":
        """Divides the docstring of an object; one that it inherits counts, one of a base of its type does not."""
        text, *rest = _SECTION.split(inspect.getdoc(item) or "")
        return cls(text.strip(), dict(zip(rest[::2], map(inspect.cleandoc, rest[1::2]), strict=True)))

    @property
    def summary(self) -> str:
        """The first sentence."""
        return _plain(" ".join(self.text.partition("\n\n")[0].split()))

    def entries(self, section: str) -> dict[str, str]:
        """What a section says of each name."""
        found = re.split(r"^(\w[\w.]*): ", self.sections.get(section, ""), flags=re.MULTILINE)[1:]
        return {name: " ".join(text.split()) for name, text in zip(found[::2], found[1::2], strict=True)}


def write() -> None:
    """Writes every page and the page that lists them, and removes pages of modules that are gone."""
    pages = render()
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def render() -> dict[str, str]:
    """The text of each page by its file name."""
    names = CONTRACT | {name: tuple(_module(name).__all__) for name in PACKAGES}
    pages = {f"offmap.{name}.md": _page(name, public) for name, public in names.items()}
    return {"README.md": _index(names)} | pages


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{offmap.__name__}.{name}")


def _index(names: dict[str, tuple[str, ...]]) -> str:
    lines = [f"| [`offmap.{name}`](offmap.{name}.md) | {Docstring.of(_module(name)).summary} |" for name in names]
    table = "\n".join(["| module | what it holds |", "|---|---|", *lines])
    about = "Written by `python docs/write_reference.py` from the docstrings. Start with [the guides](../guide/)."
    return f"# API reference\n\n{about}\n\n{table}\n"


def _page(module: str, public: tuple[str, ...]) -> str:
    holder = _module(module)
    items = {name: getattr(holder, name) for name in sorted(public, key=str.casefold)}
    listed = [f"| [`{name}`](#{name.lower()}) | {_summary(item)} |" for name, item in items.items()]
    table = "\n".join(["| name | what it does |", "|---|---|", *listed])
    parts = [f"# offmap.{module}", _plain(Docstring.of(holder).text), table, *(_item(*each) for each in items.items())]
    return "\n\n".join(parts) + "\n"


def _summary(item: Any) -> str:
    return Docstring.of(item).summary if inspect.isclass(item) or inspect.isfunction(item) else "A list of names."


def _item(name: str, item: Any) -> str:
    if inspect.isclass(item):
        return _class(name, item)
    if inspect.isfunction(item):
        return "\n\n".join([f"## {name}", _call(name, item), *_body(Docstring.of(item))])
    return f"## {name}\n\n{', '.join(f'`{each!r}`' for each in (get_args(item) or item))}"


def _class(name: str, cls: type) -> str:
    """A class with its own parameters and methods; those of the contract are described with it."""
    told, contract = Docstring.of(cls), _contract_of(cls)
    told = told._replace(sections={**told.sections, "Args": ""})
    parts = [f"## {name}", *_body(told, parameters=_parameters(cls, contract)), _methods_table(cls, contract)]
    if contract is not None:
        parts.append(_inherited(cls, contract))
    return "\n\n".join(part for part in parts if part)


def _contract_of(cls: type) -> type | None:
    """The documented base of a class that is not itself one."""
    bases = {getattr(_module(name), base) for name, public in CONTRACT.items() for base in public}
    return None if cls in bases else next((base for base in cls.__mro__ if base in bases), None)


def _inherited(cls: type, contract: type) -> str:
    parameters = ", ".join(f"`{name}`" for name in _defaults(contract) if name in _defaults(cls))
    methods = ", ".join(f"`{name}`" for name in _methods(contract))
    link = f"[`{contract.__name__}`]({contract.__module__}.md#{contract.__name__.lower()})"
    return f"From {link}: parameters {parameters}; methods {methods}."


def _methods_table(cls: type, contract: type | None) -> str:
    known = {} if contract is None else _methods(contract)
    new = {name: call for name, call in _methods(cls).items() if name not in known}
    lines = [f"| `{name}{_signature(call)}` | {Docstring.of(call).summary} |" for name, call in new.items()]
    return "\n".join(["| method | what it does |", "|---|---|", *lines]) if lines else ""


def _parameters(cls: type, contract: type | None) -> str:
    """The table of parameters with their defaults: those that the contract does not have, or has with another."""
    about: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        about |= Docstring.of(base).entries("Args") if "__doc__" in vars(base) else {}
    known = {} if contract is None else _defaults(contract)
    own = {name: default for name, default in _defaults(cls).items() if known.get(name) != default and name in about}
    rows = [f"| `{name}` | {default} | {_cell(about[name])} |" for name, default in own.items()]
    return "\n".join(["| parameter | default | meaning |", "|---|---|---|", *rows]) if rows else ""


def _defaults(cls: type) -> dict[str, str]:
    if dataclasses.is_dataclass(cls):
        fields = [field for field in dataclasses.fields(cls) if field.init]
        return {field.name: _default(_default_of(field), dataclasses.MISSING) for field in fields}
    if issubclass(cls, Exception):
        return {}
    given = [*inspect.signature(cls).parameters.values()]
    return {each.name: _default(each.default, inspect.Parameter.empty) for each in given}


def _default_of(field: "dataclasses.Field[Any]") -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _default(value: Any, missing: Any) -> str:
    return "required" if value is missing else f"`{_cell(_short(value))}`"


def _methods(cls: type) -> dict[str, Any]:
    """Public methods of a class and of its bases in this library, in the order of their definition."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith(offmap.__name__):
            public = [name for name in vars(base) if not name.startswith("_") and not _ROUTING.fullmatch(name)]
            calls = {name: inspect.unwrap(getattr(cls, name)) for name in public}
            found |= {name: call for name, call in calls.items() if inspect.isroutine(call) and call.__doc__}
    return found


def _body(told: Docstring, parameters: str = "") -> list[str]:
    """Text, parameters, results and example of a docstring as Markdown."""
    listed = {
        section: "\n".join(f"- `{name}`: {_plain(text)}" for name, text in told.entries(section).items())
        for section in ("Args", "Attributes", "Raises")
    }
    example, reference = (told.sections.get(section, "") for section in ("Example", "Reference"))
    parts = [
        _plain(told.text),
        parameters or listed["Args"],
        listed["Attributes"] and f"Attributes:\n\n{listed['Attributes']}",
        told.sections.get("Returns", "") and f"Returns: {_plain(' '.join(told.sections['Returns'].split()))}",
        listed["Raises"] and f"Raises:\n\n{listed['Raises']}",
        reference and f"Reference: {_plain(' '.join(reference.split()))}",
        example and f"```python\n{example.strip()}\n```",
    ]
    return [part for part in parts if part]


def _call(name: str, function: Any) -> str:
    return f"```python\n{name}{_signature(function)}\n```"


def _signature(function: Any) -> str:
    """The signature without types, which the descriptions name where they matter."""
    try:
        given = inspect.signature(function)
    except ValueError:
        return "(…)"
    kept = [each.replace(annotation=inspect.Parameter.empty) for each in given.parameters.values()]
    bare = [each for each in kept if each.name not in ("self", "cls")]
    texts = re.sub(r"<[^>]*>", "…", str(inspect.Signature(bare)))
    return texts.replace("|", "\\|")


def _short(value: Any) -> str:
    return value.__name__ if inspect.isclass(value) or inspect.isfunction(value) else repr(value)


def _plain(text: str) -> str:
    """Markdown instead of reStructuredText."""
    return text.replace("``", "`")


def _cell(text: str) -> str:
    """Text for a cell of a table, where a bar would end the cell."""
    return _plain(text).replace("|", "\\|")


if __name__ == "__main__":
    write()
