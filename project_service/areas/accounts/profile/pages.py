"""A user's own settings: profile, password, sessions."""

from __future__ import annotations

from flask import flash, redirect, render_template, session
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import SESSION_KEY, caller, current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.accounts.administration import service
from project_service.areas.accounts.profile.forms import PasswordForm, ProfileForm
from project_service.areas.accounts.sign_in import passwords, queries, signing_in
from project_service.areas.accounts.sign_in import sessions as sign_in_sessions
from project_service.domain.accounts.tokens import digest_of
from project_service.domain.accounts.users import User
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.forms import Form

pages = PageBlueprint("profile_pages", __name__)
ABOUT = ("pronouns", "job_title", "organization", "location")
PROFILE, PASSWORD, SESSIONS = "/-/profile", "/-/profile/password", "/-/profile/sessions"
navigation.add(navigation.NavigationEntry("Profile", PROFILE, 0, Ability.SIGNED_IN), "account")
navigation.add(navigation.NavigationEntry("Password", PASSWORD, 10, Ability.SIGNED_IN), "account")
navigation.add(navigation.NavigationEntry("Sessions", SESSIONS, 20, Ability.SIGNED_IN), "account")


@pages.get(PROFILE)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def show_profile() -> ResponseReturnValue:
    """Show the form for name, e-mail address, theme and time zone."""
    return render_template("accounts/profile.html", form=ProfileForm(obj=current_user()))


@pages.post(PROFILE)
@pages.own_transactions
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def save_profile() -> ResponseReturnValue:
    """Change name, e-mail address, theme and time zone."""
    form, user = ProfileForm(), current_user()
    fields = {"name": form.name.data or "", "email": (form.email.data or "").strip(), "theme": form.theme.data}
    fields["time_zone"] = form.time_zone.data or ""
    fields |= {name: (form[name].data or "").strip() for name in ABOUT}
    fields["bio"] = (form.bio.data or "").replace("\r\n", "\n")

    def change() -> None:
        service.update_user(user, **fields)

    if fields["email"] == user.email:
        with unit_of_work():
            accepted = form.accepted(change)
    else:  # password resets are mailed to the address
        accepted = signing_in.accepted_with_password(form, user, change)
    if accepted:
        flash("Your profile was changed.")
        return redirect(PROFILE)
    return render_template("accounts/profile.html", form=form), 422


@pages.get(PASSWORD)
@pages.with_expired_password
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def show_password() -> ResponseReturnValue:
    """Show the form for a new password."""
    return render_template("accounts/password.html", form=PasswordForm(), expired=caller().password_expired)


@pages.post(PASSWORD)
@pages.own_transactions
@pages.with_expired_password
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def save_password() -> ResponseReturnValue:
    """Change the password and end the other sessions."""
    form, user = PasswordForm(), current_user()

    def change() -> None:
        passwords.change_password(
            user,
            current=form.current_password.data or "",
            new=form.new_password.data or "",
            session=str(session.get(SESSION_KEY, "")),
        )

    if signing_in.accepted_with_password(form, user, change):
        flash("Your password was changed. Other sessions were ended.")
        return redirect("/" if caller().password_expired else PASSWORD)
    return render_template("accounts/password.html", form=form, expired=caller().password_expired), 422


@pages.get(SESSIONS)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def list_sessions() -> ResponseReturnValue:
    """Show the browsers that are signed in."""
    sessions = list(db.session.scalars(queries.sessions_of(caller().user_id or 0)))
    current = digest_of(str(session.get(SESSION_KEY, "")))
    return render_template("accounts/sessions.html", sessions=sessions, current=current, form=Form())


@pages.post(f"{SESSIONS}/<int:session_id>/end")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def end_session(session_id: int) -> ResponseReturnValue:
    """Sign out one browser."""
    sign_in_sessions.end_session(current_user(), session_id)
    flash("The session was ended.")
    return redirect(SESSIONS)


@pages.post(f"{SESSIONS}/end_others")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def end_other_sessions() -> ResponseReturnValue:
    """Sign out all browsers but this one."""
    sign_in_sessions.end_sessions(current_user(), besides=str(session.get(SESSION_KEY, "")))
    flash("All other sessions were ended.")
    return redirect(SESSIONS)


def show_user(user: User) -> ResponseReturnValue:
    """Show the profile of a user; the route of full paths calls this function."""
    hidden = user.private_profile and caller().user_id != user.id and not allowed(caller(), Ability.ADMINISTER)
    return render_template("accounts/show.html", user=user, hidden=hidden)
