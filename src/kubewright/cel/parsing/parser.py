"""The parser: tokens to a syntax tree, with macros expanded.

A Pratt parser over the grammar of CEL. It stops at the first syntax error, while cel-go's ANTLR parser goes on; its
message for that place is the same. `environment` calls it.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.cel.errors import CompileError, Issue
from kubewright.cel.parsing import lexer
from kubewright.cel.parsing.lexer import Token
from kubewright.cel.parsing.macros import COPIERS, MacroError, expand
from kubewright.cel.syntax import Call, Ident, ListLiteral, Literal, MapLiteral, Node, Select, Struct

__all__ = ("parse",)

_MAX_LENGTH: Final = 100_000
_MAX_DEPTH: Final = 250
_RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let"),
        *("loop", "package", "namespace", "null", "return", "true", "var", "void", "while"),
    )
)
# Operator: function and precedence.
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
# What may begin an operand, in the order of cel-go's messages: its text there, and the kind of token.
_OPERAND: Final = (
    *((f"'{mark}'", mark) for mark in ("[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", "true", "false", "null")),
    *(("NUM_FLOAT", "float"), ("NUM_INT", "int"), ("NUM_UINT", "uint")),
    *(("STRING", "string"), ("BYTES", "bytes"), ("IDENTIFIER", "name")),
)
_STARTERS: Final = frozenset(
    ("[", "{", "(", ".", "-", "!", "true", "false", "null", "float", "int", "uint", "string", "bytes", "name")
)
_FOLLOWERS: Final = frozenset((*_BINARY, "&&", "||", "?", ":", ".", "[", ",", ")", "]", "}", "end"))
_MAX_COPIED: Final = 20_000
"""How many nodes macros may repeat. Each `optMap` in a row doubles the expression before it."""
_MAX_DIGITS: Final = 20
_MAX_INT: Final = 2**63 - 1
_MAX_UINT: Final = 2**64 - 1


def parse(text: str, *, bind: bool = False) -> Node:
    """The tree of an expression; CompileError if it is none. `bind` allows `cel.bind`."""
    if len(text) > _MAX_LENGTH:
        size = f"expression code point size exceeds limit: size: {len(text)}, limit {_MAX_LENGTH}"
        raise CompileError(text, [Issue(size, None)])
    issues: list[Issue] = []
    parser = _Parser(lexer.tokens(text, issues), issues, bind=bind)
    try:
        node = parser.whole()
    except _ParseError as broken:
        issues.append(broken.issue)
        raise CompileError(text, issues) from None
    if issues:
        raise CompileError(text, issues)
    return node


class _ParseError(Exception):
    """A syntax error after which parsing cannot go on."""

    def __init__(self, message: str, at: int | None) -> None:
        super().__init__(message)
        self.issue = Issue(message, at)


@final
class _Parser:
    """The position in the tokens, and the issues so far."""

    def __init__(self, found: list[Token], issues: list[Issue], *, bind: bool) -> None:
        self._tokens = found
        self._next = 0
        self._issues = issues
        self._bind = bind
        self._depth = 0
        self._copied = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._current.kind != "end":
            if self._next + 1 < len(self._tokens) and self._tokens[self._next + 1].kind == "end":
                raise _ParseError(
                    f"Syntax error: extraneous input {_quote(self._current)} expecting <EOF>", self._current.at
                )
            raise _ParseError(
                f"Syntax error: mismatched input {_quote(self._current)} expecting <EOF>", self._current.at
            )
        return node

    @property
    def _current(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._take() if self._current.kind == kind else None

    def _expect(self, kind: str, expected: str = "") -> Token:
        """The token that must come now; one too many or one too few becomes an issue and is skipped."""
        current = self._current
        if current.kind == kind:
            return self._take()
        expected = expected or f"'{kind}'"
        if current.kind != "end" and self._tokens[self._next + 1].kind == kind:
            self._issues.append(
                Issue(f"Syntax error: extraneous input {_quote(current)} expecting {expected}", current.at)
            )
            self._take()
            return self._take()
        follows = _starts_operand(current) if kind == ":" else current.kind in _FOLLOWERS
        if follows and "{" not in expected:
            self._issues.append(Issue(f"Syntax error: missing {expected} at {_quote(current)}", current.at))
            return current
        raise _ParseError(f"Syntax error: mismatched input {_quote(current)} expecting {expected}", current.at)

    def _operand_or(self, *others: str) -> None:
        """Check that an operand, or one of `others`, comes now; one token too many becomes an issue and is skipped."""
        current = self._current
        if current.kind in _STARTERS or current.kind in others:
            return
        expected = ", ".join(word for word, kind in _OPERAND if kind in _STARTERS or kind in others)
        ahead = self._tokens[min(self._next + 1, len(self._tokens) - 1)].kind
        if current.kind == "end" or not (ahead in _STARTERS or ahead in others):
            raise _ParseError(f"Syntax error: mismatched input {_quote(current)} expecting {{{expected}}}", current.at)
        self._issues.append(
            Issue(f"Syntax error: extraneous input {_quote(current)} expecting {{{expected}}}", current.at)
        )
        self._take()

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _ParseError(f"expression recursion limit exceeded: {_MAX_DEPTH}", None)
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
        """`||` on level 1, `&&` on level 2; a chain becomes a balanced tree, as in cel-go, to limit its depth."""
        mark, function = ("||", "_||_") if level == 1 else ("&&", "_&&_")
        terms = [self._logic(2) if level == 1 else self._binary(3)]
        marks = []
        while (token := self._accept(mark)) is not None:
            marks.append(token.at)
            terms.append(self._logic(2) if level == 1 else self._binary(3))
        return _balance(function, terms, marks, 0, len(marks) - 1) if marks else terms[0]

    def _binary(self, tightness: int) -> Node:
        left = self._unary()
        for _ in range(_MAX_DEPTH + 1):
            function, binding = _BINARY.get(self._current.kind, ("", 0))
            if binding < tightness:
                return left
            mark = self._take()
            left = Call(mark.at, function, [left, self._binary(binding + 1)])
        raise _ParseError("max recursion depth exceeded", None)

    def _unary(self) -> Node:
        mark = self._current
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
        for _ in range(_MAX_DEPTH + 1):
            if (dot := self._accept(".")) is not None:
                node = self._selection(node, dot)
            elif (bracket := self._accept("[")) is not None:
                function = "_[?_]" if self._accept("?") is not None else "_[_]"
                index = self._expression()
                self._expect("]")
                node = Call(bracket.at, function, [node, index])
            elif self._current.kind == "{" and (name := _dotted(node)):
                node = self._struct(name)
            else:
                return node
        raise _ParseError("max recursion depth exceeded", None)

    def _selection(self, operand: Node, dot: Token) -> Node:
        optional = self._accept("?") is not None
        if self._current.kind == "quoted":
            raise _ParseError("unsupported syntax: '`'", self._current.at)
        if self._current.kind != "name":
            if self._current.kind in _RESERVED:
                raise _ParseError(
                    f"Syntax error: mismatched input {_quote(self._current)} expecting IDENTIFIER", self._current.at
                )
            place = "." if self._current.kind == "end" else f".{self._current.text}"
            raise _ParseError(f"Syntax error: no viable alternative at input '{place}'", self._current.at)
        name = self._take()
        if optional:
            return Call(dot.at, "_?._", [operand, Literal(name.at, "string", name.text)])
        if self._current.kind == "(":
            opened = self._take()
            return self._call(opened.at, name.text, self._arguments(), operand)
        return Select(dot.at, operand, name.text)

    def _call(self, at: int, function: str, arguments: list[Node], target: Node | None) -> Node:
        if function in COPIERS and target is not None:
            self._copied += _size(target, _MAX_COPIED)
            if self._copied > _MAX_COPIED:
                raise _ParseError(f"{function}() repeats too large an expression", at)
        try:
            expanded = expand(at, function, target, arguments, bind=self._bind)
        except MacroError as bad:
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
        token = self._current
        if token.kind in ("!", "-") and not self._is_number(token):
            before = self._tokens[max(self._next - 1, 0)].text
            raise _ParseError(f"Syntax error: no viable alternative at input '{before}{token.text}'", token.at)
        if token.kind in ("int", "uint", "float", "-"):
            return self._number()
        if token.kind in ("string", "bytes", "true", "false", "null"):
            if token.kind == "bytes" and lexer.has_invalid_escape(token):
                self._issues.append(Issue("unable to unescape string", token.at))
            if token.kind == "string" and lexer.has_invalid_code_point(token):
                self._issues.append(Issue("invalid unicode code point", token.at))
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

    def _integer(self, at: int, text: str, kind: str, low: int, high: int) -> Node:
        digits = text.lstrip("-").removeprefix("0x").lstrip("0")
        value = int(text, 16 if "x" in text else 10) if len(digits) <= _MAX_DIGITS else high + 1
        if not low <= value <= high:
            self._issues.append(Issue(f"invalid {kind} literal", at))
        return Literal(at, kind, value)

    def _name(self) -> Node:
        dot = self._accept(".")
        name = self._take()
        if name.text in _RESERVED:
            # An issue, so that parsing goes on and may find more.
            self._issues.append(Issue(f"reserved identifier: {name.text}", name.at if dot is None else dot.at))
        text = name.text if dot is None else f".{name.text}"
        if self._current.kind == "(":
            opened = self._take()
            return self._call(opened.at, text, self._arguments(), None)
        return Ident(name.at, text)

    def _list(self, at: int) -> Node:
        elements: list[Node] = []
        optional = set()
        self._operand_or("]", ",", "?")
        while self._current.kind != "]":
            if self._current.kind == "," and not elements:
                self._take()
                break
            if self._accept("?") is not None:
                optional.add(len(elements))
            elements.append(self._expression())
            if self._accept(",") is None:
                break
            if self._current.kind == ",":
                raise _ParseError("Syntax error: mismatched input ',' expecting ']'", self._current.at)
        self._expect("]", "{']', ','}" if elements else "")
        return ListLiteral(at, elements, frozenset(optional))

    def _map(self, at: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        self._operand_or("}", ",", "?")
        while self._current.kind != "}":
            if self._current.kind == "," and not entries:
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
        while self._current.kind != "}":
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


def _balance(function: str, terms: list[Node], marks: list[int], low: int, high: int) -> Node:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balance(function, terms, marks, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balance(function, terms, marks, middle + 1, high)
    return Call(marks[middle], function, [left, right])


def _dotted(node: Node) -> str:
    """The dotted name of a chain of selections, or an empty string."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        inner = _dotted(node.operand)
        return f"{inner}.{node.field}" if inner else ""
    return ""


def _size(node: Node, most: int) -> int:
    """How many nodes an expression has; counts no further than `most`."""
    total, left = 0, [node]
    while left and total <= most:
        left += left.pop().children()
        total += 1
    return total


def _quote(token: Token) -> str:
    return f"'{token.text}'"
