"""Which names a piece of Python takes from outside and which it leaves behind."""

from __future__ import annotations

import ast

__all__ = ["first_seen"]


class _Names(ast.NodeVisitor):
    """Names read before they are set, and names set at the top; the body of a function counts as read where it stands.

    Names set inside a function, a lambda or a comprehension stay there.
    """

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.defined: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        """Read or set."""
        if isinstance(node.ctx, ast.Store):
            self.defined.add(node.id)
        elif node.id not in self.defined:
            self.used.add(node.id)

    def _assigned(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.used |= {node.target.id} - self.defined
        if node.value is not None:
            self.visit(node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self.visit(target)

    visit_Assign = visit_AnnAssign = visit_AugAssign = _assigned

    def visit_For(self, node: ast.For) -> None:
        """What is looped over is read before the target is set."""
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    def _imported(self, node: ast.Import | ast.ImportFrom) -> None:
        self.defined |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}

    visit_Import = visit_ImportFrom = _imported

    def _scope(self, node: ast.AST) -> None:
        """A scope of its own: what it reads from outside is read here, what it sets stays inside."""
        inner = _Names()
        arguments = getattr(node, "args", None)
        if isinstance(arguments, ast.arguments):
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            inner.defined |= {argument.arg for argument in every if argument}
        for comprehension in getattr(node, "generators", []):
            inner.visit(comprehension)
        inner.generic_visit(node)
        local = inner.defined
        self.used |= {name for name in inner.used if name not in self.defined and name not in local}
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.defined.add(node.name)

    visit_FunctionDef = visit_ClassDef = visit_Lambda = _scope
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _scope


def first_seen(source: str) -> tuple[set[str], set[str]]:
    """Names that ``source`` reads before it sets them, and names that it sets at its top level.

    >>> used, defined = first_seen("y = x + 1\\nz = [k * y for k in range(n)]\\nimport os.path")
    >>> sorted(used), sorted(defined)
    (['n', 'range', 'x'], ['os', 'y', 'z'])
    >>> first_seen("def f(a):\\n    b = a + c\\n    return b")
    ({'c'}, {'f'})
    """
    names = _Names()
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    names.visit(ast.parse("\n".join(lines)))
    return names.used, names.defined
