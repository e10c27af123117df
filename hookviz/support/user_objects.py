"""Reads objects of the user's without running code of the user's: no property, no ``__getattr__``."""

import inspect
from collections.abc import Mapping
from types import MemberDescriptorType
from typing import Any, TypeGuard, TypeVar

Item = TypeVar("Item")


def own_attributes(item: object) -> Mapping[str, Any]:
    """Return the attributes that an object or a class has itself; empty for one that has no dict of them.

    >>> class Net:
    ...     size = 3
    >>> net = Net()
    >>> net.depth = 2
    >>> own_attributes(net), own_attributes(Net)["size"], own_attributes(3)
    ({'depth': 2}, 3, {})
    """
    try:
        read = type if issubclass(type(item), type) else object  # isinstance asks for ``__class__``
        attributes: Mapping[str, Any] = read.__getattribute__(item, "__dict__")
    except (AttributeError, TypeError):
        return {}
    return attributes


def read_attribute(item: object, name: str, default: Any = None) -> Any:
    """Return an attribute that an object has itself; ``default`` without it, or if only code can compute it.

    >>> class Net:
    ...     depth = property(lambda self: print("computed"))
    >>> net = Net()
    >>> net.size = 3
    >>> read_attribute(net, "size"), read_attribute(net, "depth"), read_attribute(net, "width", 0)
    (3, None, 0)
    """
    descriptor = inspect.getattr_static(type(item), name, None)
    if isinstance(descriptor, MemberDescriptorType):  # a slot, which is read without code of the user's
        try:
            return descriptor.__get__(item)
        except AttributeError:
            return default
    if hasattr(type(descriptor), "__set__"):
        return default
    return own_attributes(item).get(name, default)


def is_of(item: object, kind: type[Item]) -> TypeGuard[Item]:
    """Return whether an object is an instance of a class; unlike ``isinstance``, do not ask what it claims to be.

    >>> class Claims:
    ...     __class__ = int
    >>> isinstance(Claims(), int), is_of(Claims(), int), is_of(True, int)
    (True, False, True)
    """
    return issubclass(type(item), kind)
