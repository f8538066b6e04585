"""Forms of pages: read, judged by the services, and shown again with what is wrong beside each field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import render_template, request
from flask_wtf import FlaskForm

from project_service.kit.db.session import rollback
from project_service.kit.http.errors import ServiceError

REFUSED = (400, 409, 422)


class Form(FlaskForm):  # type: ignore[misc]  # Flask-WTF is untyped
    """A form with a token against forgery. ``problems`` are refusals that belong to no field."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.problems: list[str] = []

    def accepted(self, act: Callable[[], Any]) -> bool:
        """Whether the form was sent, well filled, and ``act`` went through; a refusal changes nothing."""
        if not self.validate_on_submit():
            return False
        try:
            act()
        except ServiceError as error:
            if error.status not in REFUSED:
                raise
            rollback()
            self.refuse(error)
            return False
        return True

    def refuse(self, error: ServiceError) -> None:
        """Put the messages of a refusal beside their fields."""
        if not isinstance(error.message, dict):
            self.problems += error.message if isinstance(error.message, list) else [str(error.message)]
            return
        for name, texts in error.message.items():
            field = self._fields.get(name)
            if field is not None:
                field.errors = [*field.errors, *texts]
            else:
                subject = "" if name == "base" else f"{name.replace('_', ' ').capitalize()} "
                self.problems += [f"{subject}{text}" for text in texts]


def confirmation(title: str, question: str, button: str, back: str, **place: Any) -> str:
    """Return the page that asks before something is taken away; its form is sent to the address it was asked at.

    ``back`` is where Cancel leads. ``place``, a ``project`` or a ``group``, gives the page that place's navigation.
    """
    return render_template(
        "confirm.html",
        form=Form(),
        title=title,
        question=question,
        action=request.path,
        button=button,
        back=back,
        **place,
    )
