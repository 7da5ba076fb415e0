<?php
/**
 * A client of `payouts serve` (docs/http.md). It needs PAYOUTS_URL and PAYOUTS_TOKEN in the environment, and the sodium
 * extension only to sign.
 */

/** Nobody knows whether the door did it. Ask again with the same payoutId, after $retryAfter seconds. */
class Unclear extends RuntimeException
{
    public function __construct(string $message, public readonly int $retryAfter = 1)
    {
        parent::__construct($message);
    }
}

/** The door did nothing for this request, and never will. An earlier one that was unclear may still have been accepted. */
class Refused extends RuntimeException
{
    /** @param string $errorCode as in docs/errors.md, such as CONFLICT; $problem: the door's whole answer */
    public function __construct(string $message, public readonly string $errorCode, public readonly array $problem)
    {
        parent::__construct($message);
    }
}

/** @return array what the door answers; @throws Unclear; @throws Refused */
function payouts(string $method, string $path, ?array $body = null): array
{
    $content = $body === null ? [] : ['content' => json_encode($body, JSON_THROW_ON_ERROR)];
    $stream = open_door($method, $path, $content);
    $text = stream_get_contents($stream);
    $headers = stream_get_meta_data($stream)['wrapper_data'] ?? [];
    fclose($stream);
    return read_answer($headers, $text === false ? '' : $text);
}

/**
 * Calls $handle for each event, each at least once: keep $event['id'] of those that you have handled. It connects again
 * whenever the stream ends, and returns once $handle returns false.
 * @throws Refused
 */
function follow(string $after, callable $handle): void
{
    for (;;) {
        try {
            // By HTTP/1.1 PHP would hold lines back.
            $stream = open_door('GET', '/v1/events?after=' . rawurlencode($after), ['protocol_version' => 1.0]);
            $headers = stream_get_meta_data($stream)['wrapper_data'] ?? [];
            if (!is_event_stream($headers)) read_answer($headers, (string) stream_get_contents($stream));
            while (($line = fgets($stream)) !== false) {
                // A line without its end was cut off: the event comes again.
                if (!str_starts_with($line, 'data: ') || !str_ends_with($line, "\n")) continue;
                $event = json_decode(substr($line, 6), true, 64);
                if (!isset($event['eventId'])) throw new Unclear('the stream is not the door\'s');
                if ($handle($event) === false) return;
                $after = $event['eventId'];
            }
            sleep(1);
        } catch (Unclear $unclear) {
            sleep($unclear->retryAfter);
        }
    }
}

/** Lines of docs/control.md, "What is signed". For metadata and notBefore see examples/signing/sign-payout.php. */
function sign(array $payout, string $keyFile, string $keyName, int $account, string $audience): array
{
    [$issued, $expires] = [gmdate('Y-m-d\TH:i:s.000\Z'), gmdate('Y-m-d\TH:i:s.000\Z', time() + 7 * 86400)];
    $payout += ['key' => $keyName, 'audience' => $audience, 'issuedAt' => $issued, 'expiresAt' => $expires];
    if (str_contains($payout['amount'], '.')) $payout['amount'] = rtrim(rtrim($payout['amount'], '0'), '.');
    $text = "payout-queue intent v1\naudience=$audience\nplatformId=$account\n";
    $names = ['payoutId', 'paymentId', 'amount', 'addressTo', 'symbol', 'reference', 'metadata', 'notBefore', 'requestedBy'];
    foreach ([...$names, 'issuedAt', 'expiresAt'] as $name) $text .= "$name=" . ($payout[$name] ?? '') . "\n";
    $der = base64_decode(preg_replace('/-----.*?-----|\s/', '', file_get_contents($keyFile)));
    $pair = sodium_crypto_sign_seed_keypair(substr($der, -32));
    $signature = sodium_crypto_sign_detached($text, sodium_crypto_sign_secretkey($pair));
    return $payout + ['signature' => sodium_bin2base64($signature, SODIUM_BASE64_VARIANT_URLSAFE_NO_PADDING)];
}

/** @return resource */
function open_door(string $method, string $path, array $more)
{
    $headers = ['Authorization: Bearer ' . getenv('PAYOUTS_TOKEN'), 'Content-Type: application/json'];
    // A redirect would turn a POST into a GET, and bring the token elsewhere.
    $http = ['method' => $method, 'header' => $headers, 'ignore_errors' => true, 'follow_location' => 0, 'timeout' => 30];
    $stream = @fopen(getenv('PAYOUTS_URL') . $path, 'r', false, stream_context_create(['http' => $more + $http]));
    if ($stream === false) throw new Unclear('no answer: ' . (error_get_last()['message'] ?? ''));
    return $stream;
}

function read_answer(array $headers, string $text): array
{
    $status = (int) (explode(' ', $headers[0] ?? '')[1] ?? 0);
    $answer = json_decode($text, true, 64);
    $retryAfter = max(1, (int) read_header($headers, 'retry-after'));
    if (!is_array($answer)) throw new Unclear("HTTP $status is no answer of the door", $retryAfter);
    // A list with conflicts is answered with 409 too, and has results instead of a code.
    if (($status >= 200 && $status < 300) || isset($answer['results'])) return $answer;
    if (!isset($answer['code'], $answer['detail'])) throw new Unclear("HTTP $status is no answer of the door", $retryAfter);
    $message = "{$answer['code']}: {$answer['detail']}";
    if ($status >= 500 || $status === 429) throw new Unclear($message, $retryAfter);
    throw new Refused($message, $answer['code'], $answer);
}

function is_event_stream(array $headers): bool
{
    return str_contains($headers[0] ?? '', ' 200') && str_starts_with(read_header($headers, 'content-type'), 'text/event-stream');
}

function read_header(array $headers, string $name): string
{
    foreach ($headers as $header) if (stripos($header, "$name:") === 0) return trim(substr($header, strlen($name) + 1));
    return '';
}
