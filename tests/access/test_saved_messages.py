"""What a page says after a form was accepted."""

from __future__ import annotations

import pytest

from project_service.access.page_parts.saved_messages import sentence_of


@pytest.mark.parametrize(
    ("view_name", "sentence"),
    [
        ("create_issue", "The issue was created."),
        ("update_group_label", "The label was saved."),
        ("delete_hook_of_project", "The webhook was deleted."),
        ("change_error_status", "The status of the error was changed."),
        ("save_details", "The details were saved."),
        ("create_group", "The group was created."),
        ("finish_all_todos", "All to-do items were marked as done."),
        ("show_issue", None),
    ],
)
def test_a_view_says_what_it_has_done(view_name, sentence):
    assert sentence_of(view_name) == sentence
