"""Signs a payout in Python, with cryptography, as `payouts keys sign` does; and verifies a receipt.

    python3 sign_payout.py sign KEY.pem KEY_NAME PLATFORM_ID AUDIENCE < payout.json >> signed.jsonl
    python3 sign_payout.py verify-receipt ed25519:… PLATFORM_ID AUDIENCE < receipt.json

AUDIENCE names the environment, as the worker's PAYOUT_AUDIENCE does: by default GATEWAY_BASE_URL#GATEWAY_PLATFORM_ID.

What is signed is text: a line for the type, then `name=value` for each field, absent ones empty. docs/control.md has it.
"""

import base64
import binascii
import hashlib
import json
import re
import sys
import unicodedata
from datetime import datetime, timedelta, timezone

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

INTENT_LINES = (
    "payoutId paymentId amount addressTo symbol reference metadata notBefore requestedBy issuedAt expiresAt".split()
)
RECEIPT_LINES = "payoutId intent state attempt gatewayId txhash at".split()
REQUIRED = ("payoutId", "amount", "addressTo")
LIFETIME = timedelta(days=7)
TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,3}))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def format_statement(kind, names, platform_id, audience, values):
    if re.fullmatch(r"[!-~]{1,200}", audience) is None:
        raise ValueError("audience: must be 1 to 200 printable characters of ASCII without spaces")
    text = f"payout-queue {kind} v1\naudience={audience}\nplatformId={platform_id}\n"
    for name in names:
        value = str(values.get(name, ""))
        if any(unicodedata.category(one) in ("Cc", "Cs") or one in "\u2028\u2029" for one in value):
            raise ValueError(f"{name}: must be one line without control characters or lone surrogates")
        text += f"{name}={value}\n"
    return text.encode()


def format_metadata(value):
    """The worker stores metadata as JavaScript writes it, and this text is signed: what differs elsewhere is refused."""
    check_metadata(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_metadata(value):
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > 2**53 - 1):
        raise ValueError("metadata: numbers must be whole and below 2^53; write others as strings")
    if isinstance(value, dict):
        for key in value:
            if re.fullmatch(r"[0-9]+", key):
                raise ValueError(f'metadata: JavaScript would move the key "{key}"; begin it with a letter')
        check_metadata(list(value.values()))
    if isinstance(value, list):
        for item in value:
            check_metadata(item)


def format_time(time):
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}Z"


def parse_time(text):
    found = TIME.fullmatch(text)
    if found is None:
        raise ValueError("notBefore: must be a time such as 2030-01-31T09:00:00Z")
    seconds, fraction, zone = found.groups()
    return datetime.fromisoformat(f"{seconds}.{(fraction or '').ljust(3, '0')}{zone.replace('Z', '+00:00')}")


def normalise(given):
    """The payout in the one form in which the queue stores it."""
    payout = dict(given)
    if "signature" in payout:
        raise ValueError("signature: the payout is signed already")
    if type(payout.get("paymentId")) is not int:
        raise ValueError("paymentId: must be a whole number")
    for name in (*REQUIRED, "symbol", "reference", "notBefore", "requestedBy"):
        if name in payout or name in REQUIRED:
            if not isinstance(payout.get(name), str) or payout[name] == "":
                raise ValueError(f"{name}: must be text that is not empty")
    reference = payout.get("reference", "")
    if reference != reference.strip().strip("\ufeff").strip():
        raise ValueError("reference: must not begin or end with spaces")
    if "." in payout["amount"]:
        payout["amount"] = payout["amount"].rstrip("0").rstrip(".")
    if "notBefore" in payout:
        payout["notBefore"] = format_time(parse_time(payout["notBefore"]))
    return payout


def sign_payout(given, private_key, key_name, platform_id, audience, now):
    """Returns the payout with key, signature, issuedAt, expiresAt and audience."""
    payout = normalise(given)
    payout["issuedAt"] = format_time(now)
    payout["expiresAt"] = format_time(now + LIFETIME)
    values = dict(payout)
    if "metadata" in payout:
        values["metadata"] = hashlib.sha256(format_metadata(payout["metadata"]).encode()).hexdigest()
    signature = private_key.sign(format_statement("intent", INTENT_LINES, platform_id, audience, values))
    payout["audience"] = audience
    payout["key"] = key_name
    payout["signature"] = base64.urlsafe_b64encode(signature).decode().rstrip("=")
    return payout


def verify_receipt(receipt, public_key, platform_id, audience):
    """Whether the key, one with the role worker, signed this receipt."""
    try:
        text = format_statement("receipt", RECEIPT_LINES, platform_id, audience, receipt)
        if not re.fullmatch(r"[A-Za-z0-9_-]{86}", receipt["signature"]):
            return False
        public_key.verify(base64.urlsafe_b64decode(receipt["signature"] + "=="), text)
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return False
    return True


def read_private_key(path):
    """Reads a PKCS#8 PEM, as `payouts keys generate` writes it."""
    with open(path, "rb") as file:
        key = load_pem_private_key(file.read(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path}: holds no private key of Ed25519 (PKCS#8, PEM)")
    return key


def read_public_key(text):
    if not text.startswith("ed25519:"):
        raise ValueError('the public key must be "ed25519:" and 44 characters of base64')
    return Ed25519PublicKey.from_public_bytes(base64.b64decode(text[len("ed25519:") :], validate=True))


def main(arguments):
    given = json.load(sys.stdin)
    match arguments:
        case ["sign", path, key_name, platform_id, audience]:
            now = datetime.now(timezone.utc)
            signed = sign_payout(given, read_private_key(path), key_name, int(platform_id), audience, now)
            print(json.dumps(signed, ensure_ascii=False, separators=(",", ":")))
            return 0
        case ["verify-receipt", public_key, platform_id, audience]:
            is_verified = verify_receipt(given, read_public_key(public_key), int(platform_id), audience)
            print("verified" if is_verified else "not verified")
            return 0 if is_verified else 5
    raise ValueError("usage: sign KEY.pem KEY_NAME PLATFORM_ID AUDIENCE | verify-receipt ed25519:… PLATFORM_ID AUDIENCE")


if __name__ == "__main__":
    # Whatever the machine's locale is.
    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8")
    try:
        sys.exit(main(sys.argv[1:]))
    except (ValueError, TypeError, binascii.Error) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
