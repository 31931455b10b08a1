"""Checks presentations with the PyPI package sd-jwt: those that are valid come to their claims, the others fail."""

import json
import sys

from jwcrypto.jwk import JWK
from sd_jwt.verifier import SDJWTVerifier

MACHINERY = {"_sd", "_sd_alg", "cnf"}
CLEAR = {"iss", "iat", "item_id", "seq", "event", "prev", "receipt"}


def strip(value):
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if k not in MACHINERY}
    if isinstance(value, list):
        return [strip(v) for v in value]
    return value


checked = wrong = 0
for line in sys.stdin:
    case = json.loads(line)
    key = JWK.from_json(json.dumps(case["jwk"]))
    try:
        verifier = SDJWTVerifier.__new__(SDJWTVerifier)
        # The package asks for ES256 unless told; ours is EdDSA.
        original = SDJWTVerifier._verify_sd_jwt
        SDJWTVerifier._verify_sd_jwt = lambda self, cb, sign_alg=None: original(self, cb, sign_alg="EdDSA")
        try:
            verifier.__init__(case["sd_jwt"], lambda issuer, header: key)
        finally:
            SDJWTVerifier._verify_sd_jwt = original
        claims = strip(verifier.get_verified_payload())
        # This package does not look for disclosures that nothing asks for; RFC 9901 section 7.1 has one look.
        text = json.dumps([verifier._sd_jwt_payload, list(verifier._hash_to_decoded_disclosure.values())])
        stray = [digest for digest in verifier._hash_to_disclosure if digest not in text]
        outcome = None if not stray else "a disclosure that no digest asks for"
        if outcome is None and claims != strip(case["claims"]):
            outcome = "other claims"
    except Exception as error:
        outcome = repr(error)
    checked += 1
    if (outcome is None) != case["valid"]:
        wrong += 1
        print(f"{case['name']}: {outcome or 'was accepted'}", file=sys.stderr)
print(f"sd-jwt (PyPI): {checked} presentations, {wrong} wrong")
sys.exit(1 if wrong or not checked else 0)
