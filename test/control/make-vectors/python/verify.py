"""Reads {publicKey (hex), statements: [{text, signature}]} from stdin; prints for each whether cryptography verifies it."""

import base64
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verifies(key, statement):
    try:
        key.verify(base64.urlsafe_b64decode(statement["signature"] + "=="), statement["text"].encode())
    except InvalidSignature:
        return False
    return True


given = json.load(sys.stdin)
public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(given["publicKey"]))
print(json.dumps([verifies(public, statement) for statement in given["statements"]]))
