"""A reply, streamed.

pip install python/
MEGALITH_LIBRARY=build/libmegalith.so python3 examples/generate.py tests/models/tales-5m "Once"
"""

import sys

import megalith

with megalith.Model(sys.argv[1]) as model:
    reply = model.generate(sys.argv[2], max_tokens=24)
    for piece in reply:
        print(piece, end="", flush=True)
    print(f"\n{len(reply.ids)} tokens, {reply.stop}")
