"""A reply of a Llama-family language model from one kernel launch.

    import megalith

    with megalith.Model("tests/models/tales-5m") as model:
        for piece in model.generate("Once there was", max_tokens=64):
            print(piece, end="", flush=True)

The work is done by libmegalith, which is found by the environment variable MEGALITH_LIBRARY (its
path), else beside this package, else by the system's loader.
"""

from megalith._library import Code, MegalithError, library_version
from megalith._model import Model, Reply

__version__ = "0.1.0"
__all__ = ["Code", "MegalithError", "Model", "Reply", "library_version"]
