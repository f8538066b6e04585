"""Forms of pages: errors of services are shown at their fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from flask import render_template, request
from flask_wtf import FlaskForm

from project_service.kit.db.session import rollback
from project_service.kit.http.errors import ServiceError

STATUSES_SHOWN_IN_FORMS = (400, 409, 422)


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Accepted(Generic[Result]):
    """A form that was accepted, with what its action returned."""

    result: Result


class Form(FlaskForm):
    """A form with a CSRF token. ``problems`` are the errors that belong to no field."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.problems: list[str] = []

    def accepted(self, act: Callable[[], Result]) -> Accepted[Result] | None:
        """Run ``act`` if the form was submitted and is valid; ``None`` if not, or if ``act`` was refused.

        An error of ``act`` that belongs to the form is rolled back and shown at its fields.
        """
        if not self.validate_on_submit():
            return None
        try:
            return Accepted(act())
        except ServiceError as error:
            if error.status not in STATUSES_SHOWN_IN_FORMS:
                raise
            rollback()
            self.refuse(error)
            return None

    def refuse(self, error: ServiceError) -> None:
        """Add the messages of an error to their fields."""
        if not isinstance(error.message, dict):
            self.problems += error.message if isinstance(error.message, list) else [str(error.message)]
            return
        for name, texts in error.message.items():
            if name in self:
                self[name].errors = [*self[name].errors, *texts]
            else:
                subject = "" if name == "base" else f"{name.replace('_', ' ').capitalize()} "
                self.problems += [f"{subject}{text}" for text in texts]


def confirmation(title: str, question: str, button: str, back: str, **subject: Any) -> str:
    """Return the page that asks before something is taken away; its form is sent to the address it was asked at.

    ``back`` is where Cancel leads. ``subject``, a ``project`` or a ``group``, gives the page that place's navigation;
    ``base`` is the template of a page of neither.
    """
    return render_template(
        "confirm.html",
        form=Form(),
        title=title,
        question=question,
        action=request.path,
        button=button,
        back=back,
        **subject,
    )
