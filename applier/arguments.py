"""What a caller from Python hands over, held against the annotations of what is called: one line
that names the argument, before anything is read.

The annotation is the only home of an argument's type. What an annotation cannot be resolved to (a
library that is imported for type checkers alone) is not checked.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import io
import numbers
import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

from applier.error_codes import Code
from applier.errors import UsageError
from applier.spelling import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
MOST_SHOWN = 60
"""Characters of a wrong value."""
_TEXTS = (str, bytes, bytearray)


def _is_truth(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # NumPy's too


_KINDS: dict[Any, tuple[str, str, Callable[[Any], bool]]] = {
    type(None): ("", "", lambda value: value is None),
    str: ("a text", "texts", lambda value: isinstance(value, str)),
    bool: ("True or False", "True or False", _is_truth),
    int: ("a whole number", "whole numbers", lambda value: _is_number(value, numbers.Integral)),
    float: ("a number", "numbers", lambda value: _is_number(value, numbers.Real)),
    collections.abc.Callable: ("a function", "functions", callable),
    os.PathLike: ("a path", "paths", lambda value: isinstance(value, os.PathLike)),
}
"""Type -> what messages call one and several, and whether a value is one; NumPy's numbers are
numbers."""
_MADE_BY = {"Tables": "the tables that applier.load_schema gives", "date": "a datetime"}
"""Class -> what messages call an object of it."""


def checked(*takers: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a public function: an argument that does not fit its annotation, or that the
    function does not have, is a UsageError. `takers` get what the function collects in `**`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        wanted: dict[str, Any] = {}

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if not wanted:
                wanted.update(_wanted(function, takers))
            _check(f"applier.{function.__qualname__}", wanted, args, kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


def _wanted(function: Callable[..., Any], takers: Iterable[Callable[..., Any]]) -> dict[str, Any]:
    """Parameter -> its type, in the order of the signature."""
    found: dict[str, Any] = {}
    for one in (function, *takers):
        for parameter in inspect.signature(one).parameters.values():
            if parameter.kind is not parameter.VAR_KEYWORD:
                found.setdefault(parameter.name, _resolved(one, parameter.annotation))
    return found


def _resolved(function: Callable[..., Any], annotation: Any) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    try:
        return eval(annotation, inspect.unwrap(function).__globals__)
    except NameError:
        return Any


def _check(
    name: str, wanted: Mapping[str, Any], args: tuple[Any, ...], given: Mapping[str, Any]
) -> None:
    for option in given:
        if option not in wanted:
            hint = did_you_mean(option, wanted) or f"it has {', '.join(wanted)}"
            raise UsageError(f"{name} has no {option!r}", code=Code.OPTION_VALUE, hint=hint)
    for option, value in (*zip(wanted, args, strict=False), *given.items()):
        if not _fits(value, wanted[option]):
            shown = repr(value)
            shown = shown if len(shown) <= MOST_SHOWN else type(value).__name__
            raise UsageError(
                f"{name}: {option}={shown} does not fit",
                code=Code.OPTION_VALUE,
                hint=f"give {_words(wanted[option])}",
            )


def _fits(value: Any, kind: Any) -> bool:
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin in _KINDS:
        return _KINDS[origin][2](value)
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _fits(one, inner[at]) for pair in value.items() for at, one in enumerate(pair)
        )
    if issubclass(origin, Iterable) and inner:
        return (
            isinstance(value, Iterable)
            and not isinstance(value, (*_TEXTS, Mapping, io.IOBase))
            and all(_fits(one, inner[0]) for one in _at_hand(value))
        )
    return isinstance(value, origin)


def _at_hand(value: Iterable[Any]) -> Iterable[Any]:
    """The members that can be looked at twice; an iterator's are checked by who takes them."""
    return () if isinstance(value, Iterator) else value


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _words(kind: Any, *, several: bool = False) -> str:
    """What an argument should be, for people: "a text, a path or a list of texts or paths"."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, types.UnionType):
        every = dict.fromkeys(_words(one, several=several) for one in inner)
        *most, last = filter(None, every)
        return f"{', '.join(most)} or {last}" if most else last
    if origin in _KINDS:
        one, many, _ = _KINDS[origin]
        return many if several else one
    if issubclass(origin, Mapping):
        return "a dictionary"
    if issubclass(origin, Iterable) and inner:
        return f"a list of {_words(inner[0], several=True)}"
    words = f"objects of {origin.__name__}" if several else f"an object of {origin.__name__}"
    return _MADE_BY.get(origin.__name__, words)


def one_of(option: str, value: str, choices: Iterable[str]) -> str:
    """The choice that a text names, whose case does not count. Raises UsageError that lists them
    all."""
    known = {choice.lower(): choice for choice in choices}
    if value.lower() not in known:
        raise UsageError(
            f"{option}: {value!r} is not known",
            code=Code.OPTION_VALUE,
            hint=f"one of {', '.join(known.values())}",
        )
    return known[value.lower()]


def at_least(least: int, **given: int | None) -> None:
    """Raises UsageError for the first that is below; None is the default of an option."""
    for option, value in given.items():
        if value is not None and value < least:
            raise UsageError(
                f"{option}: {value} is too small",
                code=Code.OPTION_VALUE,
                hint=f"give {least} or more",
            )
