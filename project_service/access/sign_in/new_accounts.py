"""Accounts that an invitation creates: the area of members asks for them, that of accounts creates them."""

from __future__ import annotations

from collections.abc import Callable

from project_service.domain.accounts.users import User

CreateAccount = Callable[..., User]
_creators: list[CreateAccount] = []


def register(create: CreateAccount) -> None:
    """Register what creates accounts; registering it twice, as a second application does, is once."""
    if create not in _creators:
        _creators.append(create)


def create_account(*, name: str, username: str, email: str, password: str) -> User:
    """Create an account whose e-mail address is known to be the user's own.

    Raises:
        Invalid: a value is not allowed or is taken.

    """
    return _creators[0](name=name, username=username, email=email, password=password)
