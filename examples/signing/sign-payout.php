<?php
/**
 * Signs a payout in PHP, with sodium alone, as `payouts keys sign` does; and verifies a receipt.
 *
 *     php sign-payout.php sign KEY.pem KEY_NAME PLATFORM_ID AUDIENCE < payout.json >> signed.jsonl
 *     php sign-payout.php verify-receipt ed25519:… PLATFORM_ID AUDIENCE < receipt.json
 *
 * AUDIENCE names the environment, as the worker's PAYOUT_AUDIENCE does: by default GATEWAY_BASE_URL#GATEWAY_PLATFORM_ID.
 *
 * What is signed is text: a line for the type, then `name=value` for each field, absent ones empty. docs/control.md has it.
 */
declare(strict_types=1);

const INTENT_LINES = ['payoutId', 'paymentId', 'amount', 'addressTo', 'symbol', 'reference', 'metadata', 'notBefore', 'requestedBy', 'issuedAt', 'expiresAt'];
const RECEIPT_LINES = ['payoutId', 'intent', 'state', 'attempt', 'gatewayId', 'txhash', 'at'];
const REQUIRED = ['payoutId', 'amount', 'addressTo'];
const LIFETIME_SECONDS = 7 * 24 * 3600;
const JSON_FLAGS = JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_LINE_TERMINATORS;
/** What stands before the 32 bytes of an Ed25519 key in PKCS#8. */
const PKCS8_HEAD = "\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/** @param array<string, string> $values by the names of the lines */
function format_statement(string $type, array $names, int $platformId, string $audience, array $values): string
{
    if (preg_match('/^[\x21-\x7e]{1,200}$/D', $audience) !== 1) {
        throw new InvalidArgumentException('audience: must be 1 to 200 printable characters of ASCII without spaces');
    }
    $text = "payout-queue $type v1\naudience=$audience\nplatformId=$platformId\n";
    foreach ($names as $name) {
        $value = $values[$name] ?? '';
        // 0 is the only good result: false is text that is no UTF-8.
        if (preg_match('/[\p{Cc}\x{2028}\x{2029}]/u', $value) !== 0) {
            throw new InvalidArgumentException("$name: must be one line of UTF-8 without control characters");
        }
        $text .= "$name=$value\n";
    }
    return $text;
}

/** The worker stores metadata as JavaScript writes it, and this text is signed: what the languages write differently is refused. */
function check_metadata(mixed $value): void
{
    if (is_float($value) || (is_int($value) && abs($value) > 2 ** 53 - 1)) {
        throw new InvalidArgumentException('metadata: numbers must be whole and below 2^53; write others as strings');
    }
    foreach (is_array($value) || is_object($value) ? (array) $value : [] as $key => $item) {
        if (is_object($value) && ctype_digit((string) $key)) {
            throw new InvalidArgumentException("metadata: JavaScript would move the key \"$key\"; begin it with a letter");
        }
        check_metadata($item);
    }
}

/** The payout in the one form in which the queue stores it. */
function normalise(stdClass $payout): stdClass
{
    $payout = clone $payout;
    if (isset($payout->signature)) {
        throw new InvalidArgumentException('signature: the payout is signed already');
    }
    if (!is_int($payout->paymentId ?? null)) {
        throw new InvalidArgumentException('paymentId: must be a whole number');
    }
    foreach ([...REQUIRED, 'symbol', 'reference', 'notBefore', 'requestedBy'] as $name) {
        $isGiven = property_exists($payout, $name) || in_array($name, REQUIRED, true);
        if ($isGiven && (!is_string($payout->$name ?? null) || $payout->$name === '')) {
            throw new InvalidArgumentException("$name: must be text that is not empty");
        }
    }
    if (preg_match('/^[\s\x{FEFF}\p{Z}]|[\s\x{FEFF}\p{Z}]$/u', $payout->reference ?? '') === 1) {
        throw new InvalidArgumentException('reference: must not begin or end with spaces');
    }
    if (str_contains($payout->amount, '.')) {
        $payout->amount = preg_replace('/\.?0+$/D', '', $payout->amount);
    }
    if (isset($payout->notBefore)) {
        if (preg_match('/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?(Z|[+-]\d\d:\d\d)$/D', $payout->notBefore) !== 1) {
            throw new InvalidArgumentException('notBefore: must be a time such as 2030-01-31T09:00:00Z');
        }
        $payout->notBefore = format_time(new DateTimeImmutable($payout->notBefore));
    }
    if (property_exists($payout, 'metadata')) {
        check_metadata($payout->metadata);
    }
    return $payout;
}

function format_time(DateTimeImmutable $time): string
{
    return $time->setTimezone(new DateTimeZone('UTC'))->format('Y-m-d\TH:i:s.v\Z');
}

/** @param string $keyPair of sodium; @return stdClass the payout with key, signature, issuedAt, expiresAt and audience */
function sign_payout(
    stdClass $payout,
    string $keyPair,
    string $keyName,
    int $platformId,
    string $audience,
    DateTimeImmutable $now,
): stdClass {
    $payout = normalise($payout);
    $payout->issuedAt = format_time($now);
    $payout->expiresAt = format_time($now->modify('+' . LIFETIME_SECONDS . ' seconds'));
    $values = array_map(strval(...), array_intersect_key((array) $payout, array_flip(array_diff(INTENT_LINES, ['metadata']))));
    if (property_exists($payout, 'metadata')) {
        $values['metadata'] = hash('sha256', json_encode($payout->metadata, JSON_FLAGS));
    }
    $text = format_statement('intent', INTENT_LINES, $platformId, $audience, $values);
    $signature = sodium_crypto_sign_detached($text, sodium_crypto_sign_secretkey($keyPair));
    $payout->audience = $audience;
    $payout->key = $keyName;
    $payout->signature = sodium_bin2base64($signature, SODIUM_BASE64_VARIANT_URLSAFE_NO_PADDING);
    return $payout;
}

/** @param string $publicKey the 32 bytes of a key with the role worker */
function verify_receipt(stdClass $receipt, string $publicKey, int $platformId, string $audience): bool
{
    $values = array_map(strval(...), array_intersect_key((array) $receipt, array_flip(RECEIPT_LINES)));
    try {
        $text = format_statement('receipt', RECEIPT_LINES, $platformId, $audience, $values);
        $signature = sodium_base642bin($receipt->signature, SODIUM_BASE64_VARIANT_URLSAFE_NO_PADDING);
        return sodium_crypto_sign_verify_detached($signature, $text, $publicKey);
    } catch (InvalidArgumentException | SodiumException) {
        return false;
    }
}

/** A key pair of a PKCS#8 PEM, as `payouts keys generate` writes it. */
function read_key_pair(string $path): string
{
    preg_match('/-----BEGIN PRIVATE KEY-----(.+)-----END PRIVATE KEY-----/s', (string) file_get_contents($path), $found);
    $der = base64_decode($found[1] ?? '');
    if (strlen($der) !== 48 || !str_starts_with($der, PKCS8_HEAD)) {
        throw new InvalidArgumentException("$path: holds no private key of Ed25519 (PKCS#8, PEM)");
    }
    return sodium_crypto_sign_seed_keypair(substr($der, -32));
}

function read_public_key(string $text): string
{
    $bytes = base64_decode(substr($text, strlen('ed25519:')), true);
    if (!str_starts_with($text, 'ed25519:') || $bytes === false || strlen($bytes) !== 32) {
        throw new InvalidArgumentException('the public key must be "ed25519:" and 44 characters of base64');
    }
    return $bytes;
}

function main(array $arguments): int
{
    [, $command, $key] = [...$arguments, '', '', ''];
    $given = json_decode((string) stream_get_contents(STDIN), false, 512, JSON_THROW_ON_ERROR);
    if ($command === 'sign' && count($arguments) === 6) {
        [, , , $name, $platformId, $audience] = $arguments;
        $signed = sign_payout($given, read_key_pair($key), $name, (int) $platformId, $audience, new DateTimeImmutable());
        echo json_encode($signed, JSON_FLAGS), "\n";
        return 0;
    }
    if ($command === 'verify-receipt' && count($arguments) === 5) {
        $isVerified = verify_receipt($given, read_public_key($key), (int) $arguments[3], $arguments[4]);
        echo $isVerified ? "verified\n" : "not verified\n";
        return $isVerified ? 0 : 5;
    }
    throw new InvalidArgumentException('usage: sign KEY.pem KEY_NAME PLATFORM_ID AUDIENCE | verify-receipt ed25519:… PLATFORM_ID AUDIENCE');
}

// So that an application can include this file.
if (realpath($_SERVER['SCRIPT_FILENAME']) === __FILE__) {
    try {
        exit(main($argv));
    } catch (InvalidArgumentException | JsonException $error) {
        fwrite(STDERR, "{$error->getMessage()}\n");
        exit(2);
    }
}
