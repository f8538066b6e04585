"""Sign-ins from networks that a user has not signed in from before: mailed and recorded, once each."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete, select, update

from project_service.access import audit
from project_service.areas.accounts import mails
from project_service.areas.accounts.sign_in.models import SignInNetwork
from project_service.domain.accounts.users import User
from project_service.kit import clock
from project_service.kit.db.session import db, insert
from project_service.kit.http.clients.client_networks import network_of

RETENTION = dt.timedelta(days=365)


def note_sign_in(user: User, address: str | None, agent: str | None) -> None:
    """Remember the network of a sign-in; queue a mail if it is new, unless it is the first one of all."""
    network = network_of(address)
    if network is None or address is None:
        return
    mine = SignInNetwork.user_id == user.id
    former = {network_of(address) for address in (user.current_sign_in_ip, user.last_sign_in_ip)} - {None}
    has_others = bool(former) or db.session.scalar(select(SignInNetwork.id).where(mine).limit(1)) is not None
    row = insert(SignInNetwork).values(user_id=user.id, network=network, last_used_at=clock.now())
    is_new = db.session.scalar(row.on_conflict_do_nothing().returning(SignInNetwork.id)) is not None
    if not is_new:
        used = update(SignInNetwork).where(mine, SignInNetwork.network == network)
        db.session.execute(used.values(last_used_at=clock.now()))
    elif has_others and network not in former:
        audit.record("user_signed_in_from_unseen_ip", user, "Signed in from an unseen address", author=user)
        mails.queue_new_network(user, address, agent)


def prune() -> None:
    """Forget networks that were not used for a year."""
    db.session.execute(delete(SignInNetwork).where(SignInNetwork.last_used_at < clock.now() - RETENTION))
