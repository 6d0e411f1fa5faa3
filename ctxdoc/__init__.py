"""ctxdoc: why a prompt cache is dead, what a context costs, and what would help.

For Python: `read`, `diagnose`, `replay`, `simulate`, `advise`, `gate` and `image`, documented in `ctxdoc.api`.
Nothing is loaded before one of them is used.
"""

import sys

__version__ = "0.1.0"
__all__ = ["CtxdocError", "advise", "diagnose", "gate", "image", "read", "replay", "simulate"]

# As typing has it, without its import: the command line starts here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxdoc.api.advise import advise
    from ctxdoc.api.diagnose import diagnose
    from ctxdoc.api.gate import gate
    from ctxdoc.api.image import image
    from ctxdoc.api.read import read
    from ctxdoc.api.replay import replay
    from ctxdoc.api.simulate import simulate
    from ctxdoc.errors import CtxdocError
else:

    def __getattr__(name: str) -> object:
        """What `__all__` names, loaded on first use."""
        if name not in __all__:
            raise AttributeError(f"module 'ctxdoc' has no attribute '{name}'")
        from importlib import import_module

        source = "ctxdoc.errors" if name == "CtxdocError" else f"ctxdoc.api.{name}"
        return getattr(import_module(source), name)


def __dir__() -> list[str]:
    """What `__all__` names, loaded or not."""
    return ["__doc__", "__version__", *__all__]


class _Package(type(sys)):  # type: ignore[misc]
    """The package whose functions keep their names.

    Two of its folders are called as functions are, replay and gate. An import binds a folder to its package,
    and the function would be gone with the first module that is loaded from there.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, type(sys))):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
