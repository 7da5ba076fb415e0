<?php
// Reads {publicKey (hex), statements: [{text, signature}]} from stdin and prints for each whether sodium verifies it.
declare(strict_types=1);

['publicKey' => $publicKey, 'statements' => $statements] = json_decode(stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
echo json_encode(array_map(
    fn (array $statement): bool => sodium_crypto_sign_verify_detached(
        sodium_base642bin($statement['signature'], SODIUM_BASE64_VARIANT_URLSAFE_NO_PADDING),
        $statement['text'],
        hex2bin($publicKey),
    ),
    $statements,
));
