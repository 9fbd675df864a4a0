"""Jinja2's immutable sandbox with fuel: where a chat template, which is somebody else's program, runs.

The parsed template is rewritten so that what Jinja2 compiles to bare Python pays through a filter that no template can name:

    for x in xs: body         for x in xs: (pay a round) body
    text {{ value }}          (pay the text) text {{ value }}
    a ~ b, a[i:j]             concatenate and slice as filters
    a == b, {k: v}, a[k]      a, b, k weighed first
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import Template, Undefined, nodes
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from .bounds import METHODS, before_format, before_method, before_operator, text_of
from .filters import FILTERS, TESTS, concatenate, slice_of
from .fuel import meter

_REFUSED = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends, nodes.Block, nodes.EvalContextModifier)
_OPERATORS = frozenset(("+", "-", "*", "/", "//", "%", "**"))


class HelperFunction:
    """A function that we hand to templates."""

    def __init__(self, name: str, function: Callable[..., object]) -> None:
        self.name = name
        self.function = function

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.function(*args, **kwargs)


class FuelledSandbox(ImmutableSandboxedEnvironment):
    """Templates see plain data, and of it only the methods listed in `bounds`."""

    intercepted_binops = _OPERATORS

    def __init__(self) -> None:
        # Blocks are trimmed as the authors of chat templates expect it
        super().__init__(trim_blocks=True, lstrip_blocks=True, finalize=_finalize, extensions=["jinja2.ext.loopcontrols"])
        self.globals = {"range": safe_range, "dict": dict, "namespace": Namespace}
        self.filters = {**FILTERS, **_HIDDEN}
        self.tests = dict(TESTS)

    def _generate(self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False) -> str:
        fuelled = _Fuelled().visit(source)
        fuelled.set_environment(self)
        return super()._generate(fuelled, name, filename, defer_init)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, LoopContext | Namespace):
            return super().is_safe_attribute(obj, attr, value)
        return attr in METHODS.get(type(obj), ())

    def getattr(self, obj: Any, attribute: str) -> Any:
        """As Jinja2 has it, but a dict's key wins over a method that no template may call: properties are called `copy` or `update`."""
        if type(obj) is dict and attribute in obj and attribute not in METHODS[dict]:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Refuse at once: Jinja2's own undefined value would still print as nothing."""
        raise SecurityError(f"access to attribute {attribute!r} of {type(obj).__name__!r} object is unsafe")

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        safe_format = super().wrap_str_format(value)
        if safe_format is None:
            return None

        def paid(*args: object, **kwargs: object) -> str:
            before_format(value.__self__, *args, *kwargs.values())
            return safe_format(*args, **kwargs)

        return HelperFunction("format", paid)  # type: ignore[return-value]

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        before_operator(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Pay for a call and its result; refuse whatever is neither the template's own, nor ours, nor a listed method."""
        fuel = meter()
        fuel.spend(1)
        owner = __obj.__self__ if isinstance(__obj, MethodType | BuiltinMethodType) else None
        if type(owner) in METHODS:
            before_method(owner, __obj.__name__, args, {key: value for key, value in kwargs.items() if not key.startswith("_")})
        elif __obj is dict:
            fuel.weigh(*args, *(value for key, value in kwargs.items() if not key.startswith("_")))
        elif isinstance(owner, LoopContext):
            fuel.weigh(*args)
        elif not isinstance(__obj, Macro | HelperFunction | Undefined) and __obj is not Namespace and __obj is not safe_range:
            raise SecurityError(f"a {type(__obj).__name__} may not be called")
        result = super().call(__context, __obj, *args, **kwargs)
        fuel.glance(result)
        return result


@lru_cache(maxsize=32)
def compile_template(source: str) -> Template:
    """Compile once per text. Raises TemplateSyntaxError, RecursionError, or what Python's compiler finds too large."""
    return _sandbox().from_string(source)


@lru_cache(maxsize=1)
def _sandbox() -> FuelledSandbox:
    return FuelledSandbox()


def _finalize(value: object) -> str:
    """What `{{ value }}` writes. Needs a meter, so the compiler cannot write constants past it."""
    return text_of(value)


# --- the filters that the rewritten template calls; their names are no identifiers -------------------------------------------


def _round(_: object) -> bool:
    meter().spend(1)
    return True


def _static(characters: int) -> str:
    meter().text(characters)
    return ""


def _weigh(value: object) -> object:
    if not isinstance(value, LoopContext | Namespace | Macro):  # these compare by identity
        meter().weigh(value)
    return value


def _made(container: object) -> object:
    meter().glance(container)
    return container


ROUND, STATIC, WEIGH, MADE, CONCATENATE, SLICE = (
    "fuel: round",
    "fuel: static",
    "fuel: weigh",
    "fuel: made",
    "fuel: concatenate",
    "fuel: slice",
)
_HIDDEN = {ROUND: _round, STATIC: _static, WEIGH: _weigh, MADE: _made, CONCATENATE: concatenate, SLICE: slice_of}


class _Fuelled(NodeTransformer):
    """Rewrites a parsed template as the head of this file shows."""

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        if isinstance(node, _REFUSED):
            raise TemplateSyntaxError(f"{type(node).__name__.lower()} has no meaning in a chat template", node.lineno)
        return super().visit(node, *args, **kwargs)

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        pay = _filter(nodes.Const(True), ROUND, node)
        node.body.insert(0, nodes.ExprStmt(pay).set_lineno(node.lineno))
        if node.test is not None:  # rounds that the condition skips have no body
            node.test = nodes.And(_filter(nodes.Const(True), ROUND, node), node.test).set_lineno(node.lineno)
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        self.generic_visit(node)
        characters = sum(len(child.data) for child in node.nodes if isinstance(child, nodes.TemplateData))
        if characters:
            node.nodes.insert(0, _filter(nodes.Const(characters), STATIC, node))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filter(nodes.List(node.nodes).set_lineno(node.lineno), CONCATENATE, node)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            bounds = [bound or nodes.Const(None) for bound in (node.arg.start, node.arg.stop, node.arg.step)]
            return _filter(node.node, SLICE, node, bounds)
        node.arg = _weighed(node.arg)
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = _weighed(node.expr)
        for operand in node.ops:
            operand.expr = _weighed(operand.expr)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        self.generic_visit(node)
        node.key = _weighed(node.key)
        return node

    def visit_List(self, node: nodes.List | nodes.Dict) -> nodes.Node:
        self.generic_visit(node)
        return _filter(node, MADE, node)

    visit_Dict = visit_List

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        self.generic_visit(node)
        return _filter(node, MADE, node) if node.ctx == "load" else node


def _weighed(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _filter(node, WEIGH, node)


def _filter(node: nodes.Node, name: str, at: nodes.Node, args: list[nodes.Expr] | None = None) -> nodes.Filter:
    return nodes.Filter(node, name, args or [], [], None, None).set_lineno(at.lineno)  # type: ignore[return-value]
