"""Which public functions of a module lack type hints, and which public names lack a text about them."""

import inspect


def faults(module, names=None):
    """The faults of the names in the module's __all__, one string each."""
    found = []
    for name in names or module.__all__:
        thing = getattr(module, name)
        if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
            continue
        if not (thing.__doc__ if inspect.isfunction(thing) else vars(thing).get("__doc__")):
            found.append(f"{name} has no docstring")
        if inspect.isclass(thing):
            continue
        signature = inspect.signature(thing)
        hints = [(p.name, p.annotation) for p in signature.parameters.values()]
        hints.append(("the result", signature.return_annotation))
        found += [f"{name} has no type hint of {what}" for what, hint in hints if hint is inspect.Signature.empty]
    return found
