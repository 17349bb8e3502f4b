"""Tokens to a syntax tree, macros expanded on the way.

A Pratt parser over the grammar of CEL. It stops at the first place where the grammar breaks, while cel-go tries to
go on; what it says about that place is meant to be the same. Called by `environment`.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.cel.errors import CompileError, Issue
from kubewright.cel.parsing import lexer
from kubewright.cel.parsing.lexer import Token
from kubewright.cel.parsing.macros import BadMacro, expand
from kubewright.cel.syntax import Call, Ident, ListLiteral, Literal, MapLiteral, Node, Select, Struct

__all__ = ("parse",)

_LONGEST: Final = 100_000
_DEEPEST: Final = 250
_RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let"),
        *("loop", "package", "namespace", "null", "return", "true", "var", "void", "while"),
    )
)
# Operator to function and how tightly it binds.
_BINARY: Final = {
    "<": ("_<_", 3),
    "<=": ("_<=_", 3),
    ">=": ("_>=_", 3),
    ">": ("_>_", 3),
    "==": ("_==_", 3),
    "!=": ("_!=_", 3),
    "in": ("@in", 3),
    "+": ("_+_", 4),
    "-": ("_-_", 4),
    "*": ("_*_", 5),
    "/": ("_/_", 5),
    "%": ("_%_", 5),
}
# What can come where an operand must, in the order messages list it: how it is shown, and the kind of token.
_OPERAND: Final = (
    *((f"'{mark}'", mark) for mark in ("[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", "true", "false", "null")),
    *(("NUM_FLOAT", "float"), ("NUM_INT", "int"), ("NUM_UINT", "uint")),
    *(("STRING", "string"), ("BYTES", "bytes"), ("IDENTIFIER", "name")),
)
_STARTERS: Final = frozenset(
    ("[", "{", "(", ".", "-", "!", "true", "false", "null", "float", "int", "uint", "string", "bytes", "name")
)
_FOLLOWERS: Final = frozenset((*_BINARY, "&&", "||", "?", ":", ".", "[", ",", ")", "]", "}", "end"))
_MAX_INT: Final = 2**63 - 1
_MAX_UINT: Final = 2**64 - 1


def parse(text: str, *, bind: bool = False) -> Node:
    """The tree of an expression; CompileError if it is none. `bind` allows `cel.bind`."""
    if len(text) > _LONGEST:
        size = f"expression code point size exceeds limit: size: {len(text)}, limit {_LONGEST}"
        raise CompileError(text, [Issue(size, None)])
    issues: list[Issue] = []
    parser = _Parser(lexer.tokens(text, issues), issues, bind=bind)
    try:
        node = parser.whole()
    except _Broken as broken:
        issues.append(broken.issue)
        raise CompileError(text, issues) from None
    if issues:
        raise CompileError(text, issues)
    return node


class _Broken(Exception):
    """The grammar allows no going on."""

    def __init__(self, message: str, at: int | None) -> None:
        super().__init__(message)
        self.issue = Issue(message, at)


@final
class _Parser:
    """The place in the tokens, and what was found wrong so far."""

    def __init__(self, found: list[Token], issues: list[Issue], *, bind: bool) -> None:
        self._tokens = found
        self._next = 0
        self._issues = issues
        self._bind = bind
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._here.kind != "end":
            if self._next + 1 < len(self._tokens) and self._tokens[self._next + 1].kind == "end":
                raise _Broken(f"Syntax error: extraneous input {_quoted(self._here)} expecting <EOF>", self._here.at)
            raise _Broken(f"Syntax error: mismatched input {_quoted(self._here)} expecting <EOF>", self._here.at)
        return node

    @property
    def _here(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._take() if self._here.kind == kind else None

    def _expect(self, kind: str, shown: str = "") -> Token:
        """The token that must come now; one too many or one too few is noted and passed over."""
        here = self._here
        if here.kind == kind:
            return self._take()
        shown = shown or f"'{kind}'"
        if here.kind != "end" and self._tokens[self._next + 1].kind == kind:
            self._issues.append(Issue(f"Syntax error: extraneous input {_quoted(here)} expecting {shown}", here.at))
            self._take()
            return self._take()
        follows = _starts_operand(here) if kind == ":" else here.kind in _FOLLOWERS
        if follows and "{" not in shown:
            self._issues.append(Issue(f"Syntax error: missing {shown} at {_quoted(here)}", here.at))
            return here
        raise _Broken(f"Syntax error: mismatched input {_quoted(here)} expecting {shown}", here.at)

    def _operand_or(self, *others: str) -> None:
        """See that an operand, or one of these, comes now; one token too many is noted and passed over."""
        here = self._here
        if here.kind in _STARTERS or here.kind in others:
            return
        shown = ", ".join(word for word, kind in _OPERAND if kind in _STARTERS or kind in others)
        ahead = self._tokens[min(self._next + 1, len(self._tokens) - 1)].kind
        if here.kind == "end" or not (ahead in _STARTERS or ahead in others):
            raise _Broken(f"Syntax error: mismatched input {_quoted(here)} expecting {{{shown}}}", here.at)
        self._issues.append(Issue(f"Syntax error: extraneous input {_quoted(here)} expecting {{{shown}}}", here.at))
        self._take()

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Broken(f"expression recursion limit exceeded: {_DEEPEST}", None)
        condition = self._logic(1)
        mark = self._accept("?")
        if mark is not None:
            then = self._logic(1)
            self._expect(":")
            otherwise = self._expression()
            condition = Call(mark.at, "_?_:_", [condition, then, otherwise])
        self._depth -= 1
        return condition

    def _logic(self, level: int) -> Node:
        """`||` on level 1, `&&` on level 2; a chain becomes a balanced tree, as deep as its logarithm."""
        mark, function = ("||", "_||_") if level == 1 else ("&&", "_&&_")
        terms = [self._logic(2) if level == 1 else self._binary(3)]
        marks = []
        while (token := self._accept(mark)) is not None:
            marks.append(token.at)
            terms.append(self._logic(2) if level == 1 else self._binary(3))
        return _balanced(function, terms, marks, 0, len(marks) - 1) if marks else terms[0]

    def _binary(self, tightness: int) -> Node:
        left = self._unary()
        for _ in range(_DEEPEST + 1):
            function, binding = _BINARY.get(self._here.kind, ("", 0))
            if binding < tightness:
                return left
            mark = self._take()
            left = Call(mark.at, function, [left, self._binary(binding + 1)])
        raise _Broken("max recursion depth exceeded", None)

    def _unary(self) -> Node:
        mark = self._here
        if mark.kind not in ("!", "-"):
            return self._member(self._primary())
        if self._is_number(mark):
            return self._member(self._primary())
        count = 0
        while self._accept(mark.kind) is not None:
            count += 1
        operand = self._member(self._primary())
        if count % 2 == 0:
            return operand
        return Call(mark.at, "!_" if mark.kind == "!" else "-_", [operand])

    def _is_number(self, mark: Token) -> bool:
        """Whether a minus is the sign of a literal."""
        return mark.kind == "-" and self._tokens[self._next + 1].kind in ("int", "float")

    def _member(self, node: Node) -> Node:
        for _ in range(_DEEPEST + 1):
            if (dot := self._accept(".")) is not None:
                node = self._selection(node, dot)
            elif (bracket := self._accept("[")) is not None:
                function = "_[?_]" if self._accept("?") is not None else "_[_]"
                index = self._expression()
                self._expect("]")
                node = Call(bracket.at, function, [node, index])
            elif self._here.kind == "{" and (name := _dotted(node)):
                node = self._struct(name)
            else:
                return node
        raise _Broken("max recursion depth exceeded", None)

    def _selection(self, operand: Node, dot: Token) -> Node:
        optional = self._accept("?") is not None
        if self._here.kind == "quoted":
            raise _Broken("unsupported syntax: '`'", self._here.at)
        if self._here.kind != "name":
            if self._here.kind in _RESERVED:
                raise _Broken(
                    f"Syntax error: mismatched input {_quoted(self._here)} expecting IDENTIFIER", self._here.at
                )
            place = "." if self._here.kind == "end" else f".{self._here.text}"
            raise _Broken(f"Syntax error: no viable alternative at input '{place}'", self._here.at)
        name = self._take()
        if optional:
            return Call(dot.at, "_?._", [operand, Literal(name.at, "string", name.text)])
        if self._here.kind == "(":
            opened = self._take()
            return self._call(opened.at, name.text, self._arguments(), operand)
        return Select(dot.at, operand, name.text)

    def _call(self, at: int, function: str, arguments: list[Node], target: Node | None) -> Node:
        try:
            expanded = expand(at, function, target, arguments, bind=self._bind)
        except BadMacro as bad:
            self._issues.append(bad.issue)
            return Literal(at, "null", None)
        return Call(at, function, arguments, target) if expanded is None else expanded

    def _arguments(self) -> list[Node]:
        arguments: list[Node] = []
        if self._accept(")") is not None:
            return arguments
        self._operand_or(")")
        if self._accept(")") is not None:
            return arguments
        arguments.append(self._expression())
        while self._accept(",") is not None:
            arguments.append(self._expression())
        self._expect(")")
        return arguments

    def _primary(self) -> Node:
        token = self._here
        if token.kind in ("!", "-") and not self._is_number(token):
            before = self._tokens[max(self._next - 1, 0)].text
            raise _Broken(f"Syntax error: no viable alternative at input '{before}{token.text}'", token.at)
        if token.kind in ("int", "uint", "float", "-"):
            return self._number()
        if token.kind in ("string", "bytes", "true", "false", "null"):
            if token.kind == "bytes" and lexer.is_unreadable(token):
                self._issues.append(Issue("unable to unescape string", token.at))
            return _constant(self._take())
        if token.kind == "(":
            self._take()
            node = self._expression()
            self._expect(")")
            return node
        if token.kind == "[":
            return self._list(self._take().at)
        if token.kind == "{":
            return self._map(self._take().at)
        if token.kind == "name" or (token.kind == "." and self._tokens[self._next + 1].kind == "name"):
            return self._name()
        self._operand_or()
        return self._primary()

    def _number(self) -> Node:
        sign = self._accept("-")
        token = self._take()
        at = token.at if sign is None else sign.at
        text = token.text if sign is None else f"-{token.text}"
        if token.kind == "float":
            value = float(text)
            if value in (float("inf"), float("-inf")):
                self._issues.append(Issue("invalid double literal", at))
            return Literal(at, "double", value)
        if token.kind == "uint":
            return self._integer(at, text[:-1], "uint", 0, _MAX_UINT)
        return self._integer(at, text, "int", -_MAX_INT - 1, _MAX_INT)

    def _integer(self, at: int, text: str, kind: str, least: int, most: int) -> Node:
        value = int(text, 16 if "x" in text else 10)
        if not least <= value <= most:
            self._issues.append(Issue(f"invalid {kind} literal", at))
        return Literal(at, kind, value)

    def _name(self) -> Node:
        dot = self._accept(".")
        name = self._take()
        if name.text in _RESERVED:
            # As an issue, not a stop: the rest may have more to say about.
            self._issues.append(Issue(f"reserved identifier: {name.text}", name.at if dot is None else dot.at))
        text = name.text if dot is None else f".{name.text}"
        if self._here.kind == "(":
            opened = self._take()
            return self._call(opened.at, text, self._arguments(), None)
        return Ident(name.at, text)

    def _list(self, at: int) -> Node:
        elements: list[Node] = []
        optional = set()
        self._operand_or("]", ",", "?")
        while self._here.kind != "]":
            if self._here.kind == "," and not elements:
                self._take()
                break
            if self._accept("?") is not None:
                optional.add(len(elements))
            elements.append(self._expression())
            if self._accept(",") is None:
                break
            if self._here.kind == ",":
                raise _Broken("Syntax error: mismatched input ',' expecting ']'", self._here.at)
        self._expect("]", "{']', ','}" if elements else "")
        return ListLiteral(at, elements, frozenset(optional))

    def _map(self, at: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        self._operand_or("}", ",", "?")
        while self._here.kind != "}":
            if self._here.kind == "," and not entries:
                self._take()
                break
            optional = self._accept("?") is not None
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), optional))
            if self._accept(",") is None:
                break
        self._expect("}", "{'}', ','}" if entries else "")
        return MapLiteral(at, entries)

    def _struct(self, name: str) -> Node:
        at = self._take().at
        fields = []
        while self._here.kind != "}":
            self._accept("?")
            field = self._expect("name", "IDENTIFIER")
            self._expect(":")
            fields.append((field.text, self._expression()))
            if self._accept(",") is None:
                break
        self._expect("}")
        return Struct(at, name, fields)


def _starts_operand(token: Token) -> bool:
    return token.kind in _STARTERS


def _constant(token: Token) -> Literal:
    if token.kind == "string":
        return Literal(token.at, "string", lexer.text_of(token))
    if token.kind == "bytes":
        return Literal(token.at, "bytes", lexer.bytes_of(token))
    if token.kind == "null":
        return Literal(token.at, "null", None)
    return Literal(token.at, "bool", token.kind == "true")


def _balanced(function: str, terms: list[Node], marks: list[int], low: int, high: int) -> Node:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(function, terms, marks, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balanced(function, terms, marks, middle + 1, high)
    return Call(marks[middle], function, [left, right])


def _dotted(node: Node) -> str:
    """The name a chain of selections spells, or nothing."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        inner = _dotted(node.operand)
        return f"{inner}.{node.field}" if inner else ""
    return ""


def _quoted(token: Token) -> str:
    return f"'{token.text}'"
