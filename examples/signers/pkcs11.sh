#!/bin/sh
# A signer for exec: with an Ed25519 key of a PKCS#11 token: an HSM, or SoftHSM2. Needs pkcs11-tool of OpenSC.
set -eu
: "${PKCS11_MODULE:?such as /usr/lib/softhsm/libsofthsm2.so}" "${PKCS11_PIN:?}" "${PKCS11_KEY_ID:?such as 01}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/text"
pkcs11-tool --module "$PKCS11_MODULE" ${PKCS11_TOKEN:+--token-label "$PKCS11_TOKEN"} --login --pin env:PKCS11_PIN \
  --sign --mechanism EDDSA --id "$PKCS11_KEY_ID" --input-file "$dir/text" --output-file "$dir/signature" >"$dir/log" 2>&1 ||
  { cat "$dir/log" >&2 && exit 1; }
base64 <"$dir/signature" | tr -d '=\n' | tr '+/' '-_'
