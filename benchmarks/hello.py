"""The least that Flask does, on gunicorn's gthread: what the requests of the service are compared with."""

from flask import Flask, jsonify
from flask.wrappers import Response

app = Flask(__name__)


@app.get("/hello")
def hello() -> Response:
    """Say hello."""
    return jsonify(hello="world")
