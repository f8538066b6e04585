"""Removal of secrets from what events say (error collection reference, section 10)."""

from __future__ import annotations

import time

import pytest

from project_service.areas.error_tracking.collection.scrubbing import FILTERED, Cleaner, is_secret_key

SECRET = "Zq9-hunter2"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
CARD = 4111111111111111
cleaner = Cleaner()


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer Zq9-hunter2",
        "authorization=Bearer Zq9-hunter2",
        "curl -H 'Authorization: Bearer Zq9-hunter2' https://example.org",
        "Cookie: theme=dark; sid=Zq9-hunter2",
        "mysql --password Zq9-hunter2 --host db",
        "deploy --db-password 'Zq9-hunter2 with blanks Zq9-hunter2'",
        "tool -token Zq9-hunter2",
        "password = 'Zq9-hunter2'",
        'DB_PASS = "Zq9-hunter2"',
        "password: str = 'Zq9-hunter2'",
        "self.password = b'Zq9-hunter2'",
        "if password == 'Zq9-hunter2':",
        'secret := "Zq9-hunter2"',
        ':password => "Zq9-hunter2"',
        "auth_token: Zq9-hunter2",
        "password:Zq9-hunter2",
        "pw=Zq9-hunter2",
        "passphrase: 'Zq9-hunter2'",
        "'DB_PASS': 'Zq9-hunter2'",
        '{"api_key": "Zq9-hunter2"}',
        r"{\"password\": \"Zq9-hunter2\"}",
        "https://s3.example.org/x?X-Amz-Date=1&X-Amz-Signature=Zq9-hunter2&y=1",
        "https://blob.example.org/x?sv=1&sig=Zq9-hunter2",
        "token=Zq9-hunter2&page=2",
        "redis://user:Zq9-hunter2@cache/0",
    ],
)
def test_secrets_in_texts_and_source_lines_are_removed(text):
    cleaned = cleaner.text(text)

    assert SECRET not in cleaned
    assert FILTERED in cleaned


@pytest.mark.parametrize("secret", ["glpat-Ab3dEf6hIj9kLmNoPqRs", JWT, "ghp_0123456789abcdefABCDEF0123456789abcd"])
def test_secrets_of_a_known_form_are_removed_wherever_they_stand(secret):
    data = {"note": f"called with {secret}, then failed", "list": [secret, [f"({secret})"]], f"key {secret}": 1}

    assert secret not in str(cleaner.data(data))


def test_arguments_and_headers_in_lists_are_removed():
    lists = [
        ["mysql", "--password", SECRET, "--verbose"],
        ["run", f"--password={SECRET}"],
        ["Host", "example.org", "Authorization", f"Bearer {SECRET}"],
        [["X-Api-Key", SECRET]],
        ["curl", "-H", f"Authorization: Bearer {SECRET}"],
    ]

    cleaned = cleaner.data(lists)
    assert SECRET not in str(cleaned)
    assert (cleaned[0][3], cleaned[2][1]) == ("--verbose", "example.org")


@pytest.mark.parametrize("number", [CARD, float(CARD), 378282246310005, 6011111111111117, 5555555555554444])
def test_card_numbers_are_removed_as_numbers_too(number):
    assert cleaner.data({"extra": [number, {"n": number}]}) == {"extra": [FILTERED, {"n": FILTERED}]}


@pytest.mark.parametrize("number", [CARD + 1, 0, -CARD, 1700000000000, 1700000000003, 1.5, True, 10**30, 41 * 10**60])
def test_other_numbers_are_kept(number):
    assert cleaner.data([number]) == [number]


@pytest.mark.parametrize(
    "text",
    [
        "Stock of article 4711 is low",
        "connect to auth:8080 failed",
        "https://example.org/secret/page",
        "bearer authentication failed",
        "the author = Paula, and the tokenizer: fast",
        "std::session::open returned 3",
        "a --verbose run of sk_learn_pipeline_with_steps",
    ],
)
def test_ordinary_texts_are_kept(text):
    assert cleaner.text(text) == text


@pytest.mark.parametrize(
    ("key", "is_secret"),
    [("pw", True), ("passphrase", True), ("DB_PASS", True), ("dbPw", True), ("compass", False), ("passenger", False)],
)
def test_words_of_keys(key, is_secret):
    assert is_secret_key(key) is is_secret


HOSTILE = (
    "=", ":", "password=", "password='", "--password ", "--", "-a", "Authorization: ", "Bearer ", "bearer a",
    "eyJ", "eyJaaaaaaaa.", "glpat-", "a", "a=", "token:", "'", '"password": "', "\\\"", "4", "4 ", "://", "@",
    "password: a =",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_take_linear_time(piece):
    def seconds(size):
        text = piece * (size // len(piece))
        start = time.process_time()
        cleaner.text(text, limit=size)
        return time.process_time() - start

    seconds(1 << 12)
    small, large = min(seconds(1 << 17) for _ in range(2)), seconds(1 << 20)
    assert large < 5  # seconds for 1 MiB; 1.4 at most on an idle machine
    assert large < 24 * small + 0.1  # 8 times in linear time, 64 times in quadratic time
