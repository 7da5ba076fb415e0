"""A client of `payouts serve` (docs/http.md).

It needs PAYOUTS_URL and PAYOUTS_TOKEN in the environment, and the package `cryptography` only to sign.
"""

import base64
import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone


class Unclear(Exception):
    """Nobody knows whether the door did it. Ask again with the same payoutId, after `retry_after` seconds."""

    def __init__(self, message, retry_after=1):
        super().__init__(message)
        self.retry_after = retry_after


class Refused(Exception):
    """The door did nothing for this request, and never will. An earlier one that was unclear may still have been accepted.

    `code` is one of docs/errors.md, such as CONFLICT; `problem` is the door's whole answer.
    """

    def __init__(self, message, code, problem):
        super().__init__(message)
        self.code = code
        self.problem = problem


def payouts(method, path, body=None):
    """Returns what the door answers. Raises Unclear or Refused."""
    try:
        with open_door(method, path, body) as response:
            return read_answer(response, response.read())
    except (OSError, http.client.HTTPException) as error:
        raise Unclear(f"no answer: {error}") from error


def follow(after):
    """Yields each event, each at least once: keep `event["id"]` of those that you have handled. Raises Refused.

    It connects again whenever the stream ends.
    """
    while True:
        try:
            with open_door("GET", "/v1/events?after=" + urllib.parse.quote(after)) as stream:
                if not stream.headers.get("Content-Type", "").startswith("text/event-stream"):
                    read_answer(stream, stream.read())
                for line in stream:
                    # A line without its end was cut off: the event comes again.
                    if not line.startswith(b"data: ") or not line.endswith(b"\n"):
                        continue
                    event = json.loads(line[6:])
                    yield event
                    after = event["eventId"]
            time.sleep(1)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(1)
        except Unclear as unclear:
            time.sleep(unclear.retry_after)


def sign(payout, key_file, key_name, account, audience):
    """Lines of docs/control.md, "What is signed". For metadata and notBefore see examples/signing/sign_payout.py."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    now = datetime.now(timezone.utc)
    times = [moment.strftime("%Y-%m-%dT%H:%M:%S.000Z") for moment in (now, now + timedelta(days=7))]
    signed = {**payout, "key": key_name, "audience": audience, "issuedAt": times[0], "expiresAt": times[1]}
    if "." in signed["amount"]:
        signed["amount"] = signed["amount"].rstrip("0").rstrip(".")
    text = f"payout-queue intent v1\naudience={audience}\nplatformId={account}\n"
    names = "payoutId paymentId amount addressTo symbol reference metadata notBefore requestedBy issuedAt expiresAt"
    text += "".join(f"{name}={signed.get(name, '')}\n" for name in names.split())
    with open(key_file, "rb") as file:
        signature = load_pem_private_key(file.read(), None).sign(text.encode())
    return {**signed, "signature": base64.urlsafe_b64encode(signature).decode().rstrip("=")}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would turn a POST into a GET, and bring the token elsewhere."""

    def redirect_request(self, *_):
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def open_door(method, path, body=None):
    headers = {"Authorization": "Bearer " + os.environ["PAYOUTS_TOKEN"], "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["PAYOUTS_URL"] + path, data, headers, method=method)
    try:
        return _OPENER.open(request, timeout=30)
    except urllib.error.HTTPError as error:
        return error


def read_answer(response, text):
    retry_after = response.headers.get("Retry-After", "")
    seconds = max(1, int(retry_after)) if retry_after.isdigit() else 1
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    is_problem = isinstance(answer, dict) and "code" in answer and "detail" in answer
    # A list with conflicts is answered with 409 too, and has results instead of a code.
    if isinstance(answer, dict) and (200 <= response.status < 300 or "results" in answer):
        return answer
    if not is_problem:
        raise Unclear(f"HTTP {response.status} is no answer of the door", seconds)
    message = f"{answer['code']}: {answer['detail']}"
    if response.status >= 500 or response.status == 429:
        raise Unclear(message, seconds)
    raise Refused(message, answer["code"], answer)
