"""mem0's side: a line of JSON in, a line of JSON out.

    mem0_side.py FOLDER

No model: what is added is stored as it is (`infer=False`), and the vector of a text is made of its words.
"""

import hashlib
import json
import math
import os
import re
import sys

SIZE = 384
"""Of a vector, as of the small sentence-transformers."""

# Before it is imported: its own files go into the folder, and nothing goes out.
folder = sys.argv[1]
os.environ |= {"MEM0_DIR": folder, "MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none"}

from mem0 import Memory  # noqa: E402
from mem0.embeddings.base import EmbeddingBase  # noqa: E402
from mem0.utils.factory import EmbedderFactory  # noqa: E402


class Words(EmbeddingBase):
    """A bag of words: each is hashed to a place of the vector, and a text is as near as it has the same words."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector of a text, of length one."""
        vector = [0.0] * SIZE
        for word in re.findall(r"\w+", text.lower()):
            place = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
            vector[place % SIZE] += 1.0
        length = math.sqrt(sum(value * value for value in vector)) or 1.0
        return [value / length for value in vector]


def main() -> None:
    """Answers until the input ends."""
    # In the place of a provider that needs a model.
    EmbedderFactory.provider_to_class["fastembed"] = "mem0_side.Words"
    store = {"path": f"{folder}/qdrant", "on_disk": True, "embedding_model_dims": SIZE, "collection_name": "turns"}
    memory = Memory.from_config(
        {
            "embedder": {"provider": "fastembed", "config": {"embedding_dims": SIZE}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": f"{folder}/history.db",
        }
    )
    numbers: dict[str, int] = {}
    out = os.fdopen(os.dup(1), "w")
    # What the library prints is not an answer.
    os.dup2(2, 1)
    print(json.dumps("ready"), file=out, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "add" in asked:
            added = memory.add(asked["add"], user_id="owner", infer=False)["results"]
            numbers[added[0]["id"]] = asked["number"]
            answer: object = len(added)
        else:
            found = memory.search(asked["search"], filters={"user_id": "owner"}, top_k=10)["results"]
            answer = [numbers[one["id"]] for one in found]
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
