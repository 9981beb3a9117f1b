"""Reads resolved prompts over HTTP. Needs only Python 3.9 or later. Copy this file into your application:

    prompts = Prompts(os.environ["PROMPT_RETRIEVAL_URL"], os.environ["PROMPT_RETRIEVAL_KEY"])
    prompt = prompts.get_resolved("support-agent")
    print(fill_slots(prompt["resolved_content"], {"shop": "Acme"}))
"""

import json
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request


class PromptError(Exception):
    """The service rejected a request: the key is wrong, or the prompt does not exist."""

    def __init__(self, status, code, message):
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code


class PromptUnavailable(Exception):
    """The service cannot respond now, and no cached prompt is recent enough. Try again after `retry_after` seconds."""

    def __init__(self, reason, retry_after):
        super().__init__(f"{reason}; retry after {retry_after:.0f} s")
        self.retry_after = retry_after


class _RefuseRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error, because a redirected request would send the API key to another host."""

    def redirect_request(self, *_):
        return None


class Prompts:
    """Reads prompts by name or id.

    Returns a cached prompt without a request for `max_age` seconds. Then one request revalidates the prompt by its ETag.
    While the service is unavailable or limits the rate, returns the cached prompt until it is `max_stale` seconds old,
    and sends no request until Retry-After has elapsed.
    """

    def __init__(self, url, key, max_age=30, max_stale=3600, timeout=5):
        self._url = url.rstrip("/")
        self._key = key
        self._max_age = max_age
        self._max_stale = max_stale
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_RefuseRedirects)
        self._known = {}  # name -> (prompt, ETag, time of the latest check)
        self._retry_at = 0.0

    def get_resolved(self, name):
        """Returns a prompt as a dict, with its resolved content in `resolved_content`."""
        known = self._known.get(name)
        now = time.monotonic()
        if known is not None and now - known[2] < self._max_age:
            return known[0]
        if now < self._retry_at:
            return self._stale(name, "the service asked clients to wait")
        try:
            prompt, etag = self._fetch(name, known)
        except urllib.error.HTTPError as error:
            with error:
                if 400 <= error.code < 500 and error.code != 429:
                    self._known.pop(name, None)
                    raise self._to_prompt_error(error) from None
                seconds = error.headers.get("Retry-After", "")
                self._retry_at = now + (int(seconds) if seconds.isdigit() else 1) + random.random()
                return self._stale(name, f"the service responded with {error.code}")
        except (OSError, ValueError) as error:
            self._retry_at = now + 1
            return self._stale(name, f"the service cannot be reached: {error}")
        self._known[name] = (prompt, etag, now)
        return prompt

    def _fetch(self, name, known):
        request = urllib.request.Request(
            f"{self._url}/api/v1/prompts/{urllib.parse.quote(name, safe='')}/resolved",
            headers={"Authorization": f"Bearer {self._key}"},
        )
        if known is not None and known[1] is not None:
            request.add_header("If-None-Match", known[1])
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return json.load(response)["data"], response.headers["ETag"]
        except urllib.error.HTTPError as error:
            if error.code == 304 and known is not None:
                return known[0], known[1]
            raise

    def _stale(self, name, reason):
        known = self._known.get(name)
        if known is not None and time.monotonic() - known[2] <= self._max_stale:
            return known[0]
        raise PromptUnavailable(reason, max(0.0, self._retry_at - time.monotonic()))

    @staticmethod
    def _to_prompt_error(error):
        try:
            body = json.load(error)["error"]
            return PromptError(error.code, body["code"], body["message"])
        except (KeyError, TypeError, ValueError):
            return PromptError(error.code, "UNKNOWN", error.reason)


def fill_slots(text, values):
    """Replaces each slot {{name}} by the value for `name`. A slot without a value does not change."""
    return re.sub(
        r"\{\{([^{}]{1,256})\}\}",
        lambda slot: str(values.get(slot[1].strip(), slot[0])),
        text,
    )
