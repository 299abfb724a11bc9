"""Generates replies of Llama-family language models. One kernel launch generates a reply.

    import megalith

    with megalith.Model("tests/models/tales-5m") as model:
        for piece in model.generate("Once there was", max_tokens=64):
            print(piece, end="", flush=True)

The package calls libmegalith. It searches for the library at the path in the environment variable
MEGALITH_LIBRARY, then beside this package, then with the system's loader.
"""

from megalith._library import Code, MegalithError, library_version
from megalith._model import Model, Reply

__version__ = "0.1.0"
__all__ = ["Code", "MegalithError", "Model", "Reply", "library_version"]
