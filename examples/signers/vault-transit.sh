#!/bin/sh
# A signer for exec: with a key of Vault's transit engine of the type ed25519. Needs curl and jq.
# Tested against a local stand-in that verifies the request, never against Vault itself.
set -eu
: "${VAULT_ADDR:?}" "${VAULT_TOKEN:?}" "${VAULT_KEY:?}"
base64 | tr -d '\n' | jq -Rc '{input: .}' |
  curl -sS --fail-with-body --max-time 4 --config /dev/fd/3 --data-binary @- \
    "$VAULT_ADDR/v1/${VAULT_MOUNT:-transit}/sign/$VAULT_KEY" 3<<END | jq -er .data.signature | sed 's/^vault:v[0-9]*://' | tr -d '=' | tr '+/' '-_'
header = "X-Vault-Token: $VAULT_TOKEN"
END
