"""Names of branches and tags, against what git says of them."""

from __future__ import annotations

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from project_service.domain.repositories.bundles import REF

parts = st.sampled_from([*"ab./@{}~^:?*[\\ -_\x7f\n", "..", ".lock", "@{", "//", "ü"])


@pytest.mark.parametrize("name", ["main", "feature/x", "v1.0", "-x", "@", "ü#1", "a.lockx", "a.lock/b", "a.b/.c", ""])
def test_ref_names_are_checked_like_git(name):
    assert bool(REF.fullmatch(name)) == pygit2.reference_is_valid_name(f"refs/heads/{name}")


@given(st.lists(parts, max_size=8).map("".join))
def test_any_ref_name_is_checked_like_git(name):
    assert bool(REF.fullmatch(name)) == pygit2.reference_is_valid_name(f"refs/heads/{name}")
