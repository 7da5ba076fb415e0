<?php
// Signs the statements of cases.json (stdin) with sodium and prints them as JSON: name, text, hash, signature.
declare(strict_types=1);

const LINES = [
    'intent' => ['payoutId', 'paymentId', 'amount', 'addressTo', 'symbol', 'reference', 'metadata', 'notBefore', 'requestedBy', 'issuedAt', 'expiresAt'],
    'approval' => ['payoutId', 'intent', 'decision', 'by', 'at', 'expiresAt'],
    'act' => ['act', 'payoutId', 'intent', 'attempt', 'reason', 'by', 'at', 'expiresAt'],
    'receipt' => ['payoutId', 'intent', 'state', 'attempt', 'txhash', 'at'],
];

function format_statement(array $statement): string
{
    // Version 1 had no audience.
    $head = isset($statement['audience']) ? "v2\naudience={$statement['audience']}" : 'v1';
    $text = "payout-queue {$statement['kind']} $head\nplatformId={$statement['platformId']}\n";
    foreach (LINES[$statement['kind']] as $name) {
        $value = (string) ($statement['fields'][$name] ?? '');
        if ($name === 'metadata' && $value !== '') {
            $value = hash('sha256', $value);
        }
        $text .= "$name=$value\n";
    }
    return $text;
}

$cases = json_decode(stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
$pair = sodium_crypto_sign_seed_keypair(hex2bin($cases['seed']));
$signed = array_map(function (array $statement) use ($pair): array {
    $text = format_statement($statement);
    $signature = sodium_crypto_sign_detached($text, sodium_crypto_sign_secretkey($pair));
    return [
        'name' => $statement['name'],
        'text' => $text,
        'hash' => hash('sha256', $text),
        'signature' => sodium_bin2base64($signature, SODIUM_BASE64_VARIANT_URLSAFE_NO_PADDING),
    ];
}, $cases['statements']);
echo json_encode(
    ['publicKey' => bin2hex(sodium_crypto_sign_publickey($pair)), 'statements' => $signed],
    JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES,
);
