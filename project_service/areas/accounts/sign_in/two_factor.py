"""Two-factor authentication with time-based codes (RFC 6238) and recovery codes."""

from __future__ import annotations

import datetime as dt
import secrets
import string
from urllib.parse import urlsplit

import pyotp
import segno
from flask import current_app
from sqlalchemy import delete, func, select, update

from project_service.access import audit
from project_service.areas.accounts import mails
from project_service.areas.accounts.sign_in import sessions
from project_service.areas.accounts.sign_in.models import RecoveryCode, TwoFactorSecret
from project_service.domain import instance_settings, rate_limits
from project_service.domain.accounts.two_factor import REQUIRED
from project_service.domain.accounts.users import User
from project_service.domain.rate_limits import HOUR_SECONDS, RateLimit
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import add_unique, db
from project_service.kit.http import urls
from project_service.kit.http.errors import BadRequest, Conflict, Invalid
from project_service.kit.security import key_ring, tokens

STEP_SECONDS = 30
DRIFT_STEPS = 1  # clocks of telephones are up to this much early or late
CODE_DIGITS = 6
RECOVERY_CODES = 10
# without letters and digits that look alike
RECOVERY_ALPHABET = "".join(sorted({*string.ascii_lowercase, *string.digits} - {*"ilo01"}))
RECOVERY_GROUPS, RECOVERY_GROUP_LENGTH = 5, 5  # 25 characters: 123 bits
ATTEMPTS = RateLimit("two_factor", 10, HOUR_SECONDS)  # of a user; right ones are taken back
MAX_CODE_LENGTH = 100
NOT_ENABLED = "Two-factor authentication is not enabled for this user"
WRONG_CODE = "is not right"


class TooManyCodes(Exception):
    """Too many wrong codes for this user; ``wait`` is the time until the next attempt."""

    def __init__(self, wait: dt.timedelta) -> None:
        super().__init__(wait)
        self.wait = wait


def new_setup(user: User) -> str:
    """Return a new secret for a user as an encrypted text, which the browser stores until it is confirmed."""
    return key_ring.keyring().encrypt(f"{user.id}:{pyotp.random_base32()}")


def secret_of(setup: object, user: User) -> str | None:
    """Return the secret of a setup, ``None`` if it cannot be read or is that of another user."""
    try:
        owner, _, secret = key_ring.keyring().decrypt(str(setup)).partition(":")
    except key_ring.SecretKeyMissing:
        return None
    return secret if owner == str(user.id) else None


def key_uri(user: User, secret: str) -> str:
    """Return the URI that authenticators read from the QR code."""
    host = urlsplit(current_app.config["EXTERNAL_URL"] or urls.base_url()).netloc
    return pyotp.TOTP(secret).provisioning_uri(name=user.username, issuer_name=f"Project Service {host}")


def qr_code(uri: str) -> tuple[int, str]:
    """Return a QR code: the number of modules of a side, with the quiet zone, and the SVG path of the dark ones."""
    rows = [list(row) for row in segno.make(uri, error="m", micro=False).matrix_iter()]
    dark = [(x, y) for y, row in enumerate(rows) for x, module in enumerate(row) if module]
    return len(rows), "".join(f"M{x} {y}h1v1h-1z" for x, y in dark)


def enable(user: User, secret: str, code: str) -> list[str]:
    """Switch two-factor authentication on, if the code belongs to the secret; return the recovery codes.

    Raises:
        Invalid: the code is wrong.
        Conflict: it is on already.
        TooManyCodes: there were too many wrong codes.

    """
    _count_attempt(user)
    step = _matching_step(secret, _digits(code), after=0)
    if step is None:
        raise Invalid(code=WRONG_CODE)
    lock_row(user, "two_factor_enabled", "deleting_since")
    add_unique(
        TwoFactorSecret(user_id=user.id, secret=secret, last_step=step),
        Conflict("Two-factor authentication is enabled already"),
    )
    user.two_factor_enabled, user.two_factor_grace_started_at = True, None
    _forget_attempts(user)
    audit.record("user_enable_two_factor", user, "Enabled two-factor authentication")
    mails.queue_two_factor(user, enabled=True)
    return _new_recovery_codes(user)


def disable(user: User) -> None:
    """Switch two-factor authentication off and delete secret and recovery codes.

    Raises:
        BadRequest: it is not on.

    """
    lock_row(user, "two_factor_enabled", "deleting_since")
    if not user.two_factor_enabled:
        raise BadRequest(f"400 Bad request - {NOT_ENABLED}")
    for model in (TwoFactorSecret, RecoveryCode):
        db.session.execute(delete(model).where(model.user_id == user.id))
    user.two_factor_enabled = False
    audit.record("user_disable_two_factor", user, "Disabled two-factor authentication")
    mails.queue_two_factor(user, enabled=False)


def reset_for(user: User) -> None:
    """Switch two-factor authentication off for a user who cannot sign in, and end their sessions.

    Raises:
        BadRequest: it is not on.

    """
    disable(user)
    sessions.end_sessions(user)


def is_required() -> bool:
    """Whether the instance requires two-factor authentication of all users."""
    return bool(instance_settings.setting(REQUIRED))


def replace_recovery_codes(user: User) -> list[str]:
    """Replace the recovery codes of a user and return the new ones.

    Raises:
        BadRequest: two-factor authentication is not on.

    """
    lock_row(user, "two_factor_enabled")
    if not user.two_factor_enabled:
        raise BadRequest(f"400 Bad request - {NOT_ENABLED}")
    audit.record("user_recovery_codes_generated", user, "Generated new recovery codes")
    return _new_recovery_codes(user)


def recovery_codes_left(user: User) -> int:
    """Return the number of unused recovery codes."""
    return db.session.scalar(select(func.count()).select_from(RecoveryCode).where(RecoveryCode.user_id == user.id)) or 0


def verify(user: User, text: str) -> bool:
    """Accept a code of the authenticator or a recovery code, each once.

    Raises:
        TooManyCodes: there were too many wrong codes.

    """
    _count_attempt(user)
    if not (_use_code(user, text) or _use_recovery_code(user, text)):
        return False
    _forget_attempts(user)
    return True


def _use_code(user: User, text: str) -> bool:
    secret = db.session.scalar(select(TwoFactorSecret).where(TwoFactorSecret.user_id == user.id))
    step = None if secret is None else _matching_step(secret.secret, _digits(text), after=secret.last_step)
    if secret is None or step is None:
        return False
    # of two concurrent requests with the same code only one changes the row
    used = update(TwoFactorSecret).where(TwoFactorSecret.id == secret.id, TwoFactorSecret.last_step < step)
    return db.session.scalar(used.values(last_step=step).returning(TwoFactorSecret.id)) is not None


def _use_recovery_code(user: User, text: str) -> bool:
    used = delete(RecoveryCode).where(
        RecoveryCode.user_id == user.id, RecoveryCode.digest == tokens.digest(_normalised(text))
    )
    if db.session.scalar(used.returning(RecoveryCode.id)) is None:
        return False
    audit.record("user_recovery_code_used", user, "Signed in with a recovery code", author=user)
    return True


def _matching_step(secret: str, code: str, *, after: int) -> int | None:
    """Return the time step of a code, if it is a current one and later than the last that was used."""
    if len(code) != CODE_DIGITS:
        return None
    now = int(clock.now().timestamp()) // STEP_SECONDS
    otp = pyotp.TOTP(secret, digits=CODE_DIGITS, interval=STEP_SECONDS)
    steps = range(max(now - DRIFT_STEPS, after + 1), now + DRIFT_STEPS + 1)
    matching = [step for step in steps if tokens.same(otp.generate_otp(step), code)]
    return matching[0] if matching else None


def _digits(text: str) -> str:
    digits = "".join(text[:MAX_CODE_LENGTH].split())
    return digits if digits.isascii() and digits.isdigit() else ""


def _normalised(text: str) -> str:
    return "".join(text[:MAX_CODE_LENGTH].split()).replace("-", "").lower()


def _new_recovery_codes(user: User) -> list[str]:
    db.session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user.id))
    codes = [_random_code() for _ in range(RECOVERY_CODES)]
    db.session.add_all(RecoveryCode(user_id=user.id, digest=tokens.digest(_normalised(code))) for code in codes)
    return codes


def _random_code() -> str:
    groups = range(RECOVERY_GROUPS)
    return "-".join("".join(secrets.choice(RECOVERY_ALPHABET) for _ in range(RECOVERY_GROUP_LENGTH)) for _ in groups)


def _count_attempt(user: User) -> None:
    """Count an attempt before it is checked, so that concurrent ones cannot exceed the limit."""
    wait = rate_limits.count(ATTEMPTS.counter(user.id))
    if wait is not None:
        raise TooManyCodes(wait)


def _forget_attempts(user: User) -> None:
    rate_limits.reset(ATTEMPTS.counter(user.id))
