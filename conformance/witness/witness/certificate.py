"""A certificate for `localhost`, by an authority that is made for it and forgotten (TLS 1.3 alone, OAP-CORE 8.1)."""

import datetime
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, by: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signer = by or (subject, key)
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=7))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    if by:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    return builder.sign(signer, hashes.SHA256())


def context(authority: str) -> ssl.SSLContext:
    """A server's context. The authority's certificate is written to a file, for those who shall trust it."""
    own, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = _certificate("witness authority", own, None)
    certificate = _certificate("localhost", leaf, (ca.subject, own))
    pem = serialization.Encoding.PEM
    Path(authority).write_bytes(ca.public_bytes(pem))
    key = leaf.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    with tempfile.NamedTemporaryFile() as chain:
        chain.write(key + certificate.public_bytes(pem))
        chain.flush()
        made.load_cert_chain(chain.name)
    return made
