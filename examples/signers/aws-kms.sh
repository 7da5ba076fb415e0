#!/bin/sh
# A signer for exec: with a key of AWS KMS of the kind ECC_NIST_EDWARDS25519. Needs curl 7.75 or newer, and jq.
# Tested against a local stand-in that verifies the request, never against AWS itself.
set -eu
: "${AWS_REGION:?}" "${AWS_ACCESS_KEY_ID:?}" "${AWS_SECRET_ACCESS_KEY:?}" "${KMS_KEY_ID:?}"
base64 | tr -d '\n' |
  jq -Rc '{KeyId: env.KMS_KEY_ID, Message: ., MessageType: "RAW", SigningAlgorithm: "ED25519_SHA_512"}' |
  curl -sS --fail-with-body --max-time 4 --config /dev/fd/3 --aws-sigv4 "aws:amz:$AWS_REGION:kms" \
    -H 'Content-Type: application/x-amz-json-1.1' -H 'X-Amz-Target: TrentService.Sign' --data-binary @- \
    "${AWS_ENDPOINT_URL_KMS:-https://kms.$AWS_REGION.amazonaws.com}/" 3<<END | jq -er .Signature | tr -d '=' | tr '+/' '-_'
user = "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"
${AWS_SESSION_TOKEN:+header = "X-Amz-Security-Token: $AWS_SESSION_TOKEN"}
END
