"""Signs the statements of cases.json (stdin) and prints them as JSON: name, text, hash, signature, and `sk` as a hardware
key, played by software, makes it; with the argument --ssh-keygen also `ssh`, which ssh-keygen makes.
"""

import base64
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

LINES = {
    "intent": "payoutId paymentId amount addressTo symbol reference metadata notBefore requestedBy issuedAt expiresAt",
    "approval": "payoutId intent decision by at expiresAt",
    "act": "act payoutId intent attempt reason by at expiresAt",
    "receipt": "payoutId intent state attempt txhash at",
}
SK_TYPE = b"sk-ssh-ed25519@openssh.com"
USER_PRESENT = 1


def format_statement(statement):
    fields = dict(statement["fields"])
    if "metadata" in fields:
        fields["metadata"] = hashlib.sha256(fields["metadata"].encode()).hexdigest()
    # Version 1 had no audience.
    bound = [f"audience={statement['audience']}"] if "audience" in statement else []
    version = "v2" if bound else "v1"
    lines = [f"payout-queue {statement['kind']} {version}", *bound, f"platformId={statement['platformId']}"]
    lines += [f"{name}={fields.get(name, '')}" for name in LINES[statement["kind"]].split()]
    return "".join(f"{line}\n" for line in lines)


def field(value):
    return struct.pack(">I", len(value)) + value


def armour(blob):
    text = base64.b64encode(blob).decode()
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    return "\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""])


def sign_as_hardware(key, public, application, namespace, text, counter, flags=USER_PRESENT):
    """PROTOCOL.sshsig and PROTOCOL.u2f of OpenSSH."""
    digest = hashlib.sha512(text.encode()).digest()
    message = b"SSHSIG" + field(namespace) + field(b"") + field(b"sha512") + field(digest)
    state = struct.pack(">BI", flags, counter)
    signature = key.sign(hashlib.sha256(application).digest() + state + hashlib.sha256(message).digest())
    blob = field(SK_TYPE) + field(signature) + state
    public_blob = field(SK_TYPE) + field(public) + field(application)
    head = b"SSHSIG" + struct.pack(">I", 1)
    return armour(head + field(public_blob) + field(namespace) + field(b"") + field(b"sha512") + field(blob))


def sign_with_ssh_keygen(key, namespace, texts):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "key")
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(pem)
        command = ["ssh-keygen", "-Y", "sign", "-f", path, "-n", namespace.decode()]
        for text in texts:
            yield subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout.decode()


def main():
    cases = json.load(sys.stdin)
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(cases["seed"]))
    public = key.public_key().public_bytes_raw()
    application, namespace = cases["application"].encode(), cases["namespace"].encode()
    texts = [format_statement(statement) for statement in cases["statements"]]
    signed = [
        {
            "name": statement["name"],
            "text": text,
            "hash": hashlib.sha256(text.encode()).hexdigest(),
            "signature": base64.urlsafe_b64encode(key.sign(text.encode())).decode().rstrip("="),
            "sk": sign_as_hardware(key, public, application, namespace, text, counter),
        }
        for counter, (statement, text) in enumerate(zip(cases["statements"], texts))
    ]
    if "--ssh-keygen" in sys.argv:
        for entry, armoured in zip(signed, sign_with_ssh_keygen(key, namespace, texts)):
            entry["ssh"] = armoured
    ssh_blob = field(b"ssh-ed25519") + field(public)
    sk_blob = field(SK_TYPE) + field(public) + field(application)
    untouched = sign_as_hardware(key, public, application, namespace, texts[0], 7, flags=0)
    result = {
        "publicKey": public.hex(),
        "sshPublic": f"ssh-ed25519 {base64.b64encode(ssh_blob).decode()} test",
        "skPublic": f"{SK_TYPE.decode()} {base64.b64encode(sk_blob).decode()} test",
        "skUntouched": untouched,
        "statements": signed,
    }
    json.dump(result, sys.stdout, ensure_ascii=False)


main()
