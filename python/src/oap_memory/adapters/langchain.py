"""The memory as LangChain's tools, retriever and `BaseStore`: `pip install oap-memory[langchain]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import BaseStore
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import ConfigDict

from ..agent import Agent
from ..errors import UsageError
from ..facts import Fact, Kind, Level, Recall
from ..packing import block
from ..tools import definitions, use

MAX_KEY = 256 - len("key:")
"""Characters of a key: with what stands before it, a label."""


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


class MemoryStore(BaseStore[str, str]):
    """Texts by key: an item each, private to the agent, with the store's name as its topic and a label `key:KEY`.

    A text that is set again is another version of its item. Where two programs set a new key at once there are two
    items, and the newer one is read.

    >>> store = MemoryStore(agent, "settings")
    >>> store.mset([("theme", "dark"), ("font", "large")])
    >>> store.mget(["theme", "size"]), sorted(store.yield_keys())
    (['dark', None], ['font', 'theme'])
    >>> store.mdelete(["theme"])
    >>> store.mget(["theme"])
    [None]
    """

    def __init__(self, agent: Agent, name: str, *, level: Level = "agent_inferred") -> None:
        """`name` tells the stores of an agent apart; `level` is whose word the texts are."""
        self._agent = agent
        self._name = name
        self._level: Level = level

    @cached_property
    def _did(self) -> str:
        return self._agent.status().did

    def _found(self, key: str) -> Fact | None:
        facts = self._agent.query(topic=self._name, tags=[_label(key)], agent=self._did, limit=1).facts
        return facts[0] if facts else None

    def mget(self, keys: Sequence[str]) -> list[str | None]:
        """The texts, in the order of the keys.

        >>> MemoryStore(agent, "empty").mget(["theme"])
        [None]
        """
        found = {key: self._found(key) for key in dict.fromkeys(keys)}
        return [None if (fact := found[key]) is None else fact.content for key in keys]

    def mset(self, key_value_pairs: Sequence[tuple[str, str]]) -> None:
        """Sets texts, one after the other. A text has words: an empty one is refused.

        >>> MemoryStore(agent, "colours").mset([("sky", "")])
        Traceback (most recent call last):
        oap_memory.errors.InvalidInput: 400 invalid_input: content: must have words, at most 65536 bytes
        """
        for key, value in key_value_pairs:
            held = self._found(key)
            if held is None:
                self._agent.learn(value, topic=self._name, tags=[_label(key)], level=self._level, scope="private")
            elif held.content != value:
                self._agent.correct(held.item_id, value, level=self._level, version=held.version)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Takes texts back. What is not there is passed over.

        >>> MemoryStore(agent, "empty").mdelete(["theme"])
        """
        for key in keys:
            while (held := self._found(key)) is not None:
                self._agent.forget(held.item_id)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys, the newest first.

        >>> store = MemoryStore(agent, "drinks")
        >>> store.mset([("hot.tea", "green"), ("cold.tea", "iced")])
        >>> list(store.yield_keys(prefix="hot."))
        ['hot.tea']
        """
        told = set()
        for page in self._agent.pages(topic=self._name, agent=self._did, limit=100):
            for fact in page.facts:
                for key in (tag.removeprefix("key:") for tag in fact.tags if tag.startswith("key:")):
                    if key.startswith(prefix or "") and key not in told:
                        told.add(key)
                        yield key


def _label(key: str) -> str:
    if not 1 <= len(key) <= MAX_KEY:
        raise UsageError(f"key must have 1 to {MAX_KEY} characters")
    return "key:" + key
