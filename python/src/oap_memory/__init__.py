"""OAP memory exchange (RFC 0010): a verifier of its proofs, and a grantee's client.

>>> verify({"verificationMethod": [], "id": "did:web:a.example"}).kind
'DID document'
"""

from .canonical import canonical, parse
from .client import AsyncClient, Client
from .documents import Documents
from .errors import GatewayError, OapError, Refused, Unreachable, UsageError
from .grantee import Answer, Bundle
from .keyfile import PrivateKey
from .report import Reader, Report, Unchecked
from .verifying import verify

__all__ = [
    "Answer",
    "AsyncClient",
    "Bundle",
    "Client",
    "Documents",
    "GatewayError",
    "OapError",
    "PrivateKey",
    "Reader",
    "Refused",
    "Report",
    "Unchecked",
    "Unreachable",
    "UsageError",
    "canonical",
    "parse",
    "verify",
]
