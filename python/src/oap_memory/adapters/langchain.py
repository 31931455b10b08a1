"""The memory as LangChain's tools, retriever and `BaseStore`: `pip install oap-memory[langchain]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import BaseStore
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import ConfigDict

from ..agent import Agent
from ..errors import Conflict, NotFound, UsageError
from ..facts import Fact, Kind, Recall
from ..packing import block
from ..tools import definitions, use

_VALUE = "value"
"""The member of an entry's object that is the store's value."""


def _call(agent: Agent, tool: str, /, **arguments: Any) -> str:
    outcome = use(agent, tool, arguments)
    if outcome.is_error:
        raise ToolException(outcome.text)
    return outcome.text


def tools(agent: Agent) -> list[BaseTool]:
    """The memory tools, for `model.bind_tools(...)` or an agent.

    >>> [tool.name for tool in tools(agent)][:2]
    ['memory_learn', 'memory_recall']
    >>> tools(agent)[1].invoke({"query": "tea", "limit": 0})
    'limit: must be 1 to 100'
    """
    return [
        StructuredTool(
            name=tool["name"],
            description=tool["description"],
            args_schema=tool["inputSchema"],
            func=partial(_call, agent, tool["name"]),
            handle_tool_error=True,
        )
        for tool in definitions()
    ]


def document(fact: Fact) -> Document:
    """An item as a document: its text is the item's element, with source and level.

    A chain puts the text before a model as it is. What the item says alone is in `metadata`.

    >>> learned = agent.learn("Parcels go to the porter", topic="parcels")
    >>> shown = document(agent.query(topic="parcels").facts[0])
    >>> shown.id == learned.item_id, shown.metadata["content"], shown.page_content.splitlines()[1]
    (True, 'Parcels go to the porter', 'Parcels go to the porter')
    """
    metadata = {
        "content": fact.content,
        "kind": fact.kind,
        "topic": fact.topic,
        "tags": list(fact.tags),
        "agent": fact.agent,
        "level": fact.level,
        "confidence": fact.confidence,
        "human_verified": fact.human_verified,
        "needs_verification": fact.needs_verification,
        "learned_at": fact.learned_at,
        "version": fact.version,
        "commitment": fact.commitment,
        "score": fact.score,
    }
    return Document(id=fact.item_id, page_content=block(fact), metadata=metadata)


class MemoryRetriever(BaseRetriever):
    """Recalls by words, the best match first.

    >>> _ = agent.learn("The alarm code is with Ann", topic="alarm")
    >>> [found.metadata["topic"] for found in MemoryRetriever(agent=agent, k=1).invoke("who has the alarm code?")]
    ['alarm']
    """

    agent: Agent
    k: int = 10
    """At most so many documents, 1 to 100."""
    topic: str | None = None
    kinds: list[Kind] | None = None
    min_confidence: float | None = None

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        more: Recall = {"limit": self.k if k is None else k}
        if self.topic is not None:
            more["topic"] = self.topic
        if self.kinds is not None:
            more["kinds"] = self.kinds
        if self.min_confidence is not None:
            more["min_confidence"] = self.min_confidence
        return [document(fact) for fact in self.agent.recall(query, **more).facts]


class MemoryStore(BaseStore[str, Any]):
    """Values of JSON by key, in the agent's working memory: private to the agent, and no former value is kept.

    >>> store = MemoryStore(agent, "settings")
    >>> store.mset([("theme", "dark"), ("size", {"width": 80})])
    >>> store.mget(["theme", "size", "font"]), sorted(store.yield_keys())
    (['dark', {'width': 80}, None], ['size', 'theme'])
    """

    def __init__(self, agent: Agent, namespace: str) -> None:
        """`namespace` tells the stores of an agent apart."""
        if namespace.endswith("*"):
            raise UsageError("namespace must not end with *", "namespace")
        self._working = agent.working
        self._namespace = namespace

    def mget(self, keys: Sequence[str]) -> list[Any]:
        """The values, in the order of the keys.

        >>> MemoryStore(agent, "empty").mget(["theme"])
        [None]
        """
        found = {key: self._working.get(self._namespace, key) for key in dict.fromkeys(keys)}
        return [None if (entry := found[key]) is None else entry.value.get(_VALUE) for key in keys]

    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Sets values, one after the other, each over whatever is there.

        >>> MemoryStore(agent, "colours").mset([("sky", "x" * 70_000)])
        Traceback (most recent call last):
        oap_memory.errors.InvalidInput: 413 too_large: value: ...
        """
        for key, value in key_value_pairs:
            try:
                self._working.set(self._namespace, key, {_VALUE: value})
            except (Conflict, NotFound):
                # Another program changed it meanwhile: over what is there now.
                self._working.get(self._namespace, key)
                self._working.set(self._namespace, key, {_VALUE: value})

    def mdelete(self, keys: Sequence[str]) -> None:
        """Erases values. What is not there is passed over.

        >>> MemoryStore(agent, "empty").mdelete(["theme"])
        """
        for key in keys:
            self._working.delete(self._namespace, key)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys, the last change first.

        >>> store = MemoryStore(agent, "drinks")
        >>> store.mset([("hot.tea", "green"), ("cold.tea", "iced")])
        >>> list(store.yield_keys(prefix="hot."))
        ['hot.tea']
        """
        for entry in self._working.list(self._namespace):
            if entry.key.startswith(prefix or ""):
                yield entry.key
