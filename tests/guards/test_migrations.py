"""What the migrations make is what the models say."""

from __future__ import annotations

import warnings

import pytest
from sqlalchemy import inspect

from project_service import doctor
from project_service.kit.database import Base, db


@pytest.mark.both_databases
def test_the_migrations_make_what_the_models_say(app):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLite cannot tell its expression indexes; the next test looks for them
        assert doctor.differences() == []


@pytest.mark.both_databases
def test_every_index_of_the_models_is_in_the_database(app):
    for table in Base.metadata.sorted_tables:
        statement = f"SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = '{table.name}'"
        with db.engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                found = set(connection.exec_driver_sql(statement).scalars())
            else:
                found = {index["name"] for index in inspect(connection).get_indexes(table.name)}
        assert {index.name for index in table.indexes} <= found
