"""OAP memory exchange (RFC 0010): an agent's own memory, a grantee's client, and a verifier of its proofs.

>>> verify({"verificationMethod": [], "id": "did:web:a.example"}).kind
'DID document'
"""

from .agent import Agent, AsyncAgent
from .calls import Told
from .canonical import canonical, parse
from .client import AsyncClient, Client
from .documents import Documents
from .errors import (
    Conflict,
    GatewayError,
    InvalidInput,
    NotFound,
    NotPermitted,
    OapError,
    Refused,
    TooMany,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UsageError,
)
from .facts import Fact
from .grantee import Answer, Bundle
from .keyfile import PrivateKey
from .packing import Packed, block, pack
from .report import Reader, Report, Unchecked
from .session import AsyncSession, Session
from .tools import definitions
from .verifying import verify
from .window import Message, Window

__all__ = [
    "Agent",
    "Answer",
    "AsyncAgent",
    "AsyncClient",
    "AsyncSession",
    "Bundle",
    "Client",
    "Conflict",
    "Documents",
    "Fact",
    "GatewayError",
    "InvalidInput",
    "Message",
    "NotFound",
    "NotPermitted",
    "OapError",
    "Packed",
    "PrivateKey",
    "Reader",
    "Refused",
    "Report",
    "Session",
    "Told",
    "TooMany",
    "Unauthenticated",
    "Unavailable",
    "Unchecked",
    "Unreachable",
    "UsageError",
    "Window",
    "block",
    "canonical",
    "definitions",
    "pack",
    "parse",
    "verify",
]
