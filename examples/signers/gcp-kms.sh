#!/bin/sh
# A signer for exec: with a key version of Google Cloud KMS of the kind EC_SIGN_ED25519, which signs the text itself.
# Needs curl and jq. Tested against a local stand-in that verifies the request, never against Google itself.
set -eu
: "${KMS_KEY_VERSION:?projects/…/locations/…/keyRings/…/cryptoKeys/…/cryptoKeyVersions/…}"
token=${GCP_ACCESS_TOKEN:-$(gcloud auth print-access-token)}
base64 | tr -d '\n' | jq -Rc '{data: .}' |
  curl -sS --fail-with-body --max-time 4 --config /dev/fd/3 -H 'Content-Type: application/json' --data-binary @- \
    "${GCP_KMS_URL:-https://cloudkms.googleapis.com}/v1/$KMS_KEY_VERSION:asymmetricSign" 3<<END | jq -er .signature | tr -d '=' | tr '+/' '-_'
header = "Authorization: Bearer $token"
END
