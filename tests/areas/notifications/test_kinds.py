"""Bodies and answers of each kind of channel, as its service documents them; texts are hostile."""

from __future__ import annotations

from project_service.areas.notifications.kinds import KINDS, Answer, ChannelData, Outgoing
from project_service.areas.notifications.messages import ENDED, ChannelMessage
from project_service.kit import exact_json
from project_service.kit.deliveries import DeliveryResult
from project_service.kit.security.outgoing_http.rules import Policy

HOSTILE = "<!channel> @everyone *x* <b> [a](http://evil) _y_"
URL = "https://git.example.org/acme/shop/-/alert_management/12/details"
ACKNOWLEDGE = "https://git.example.org/-/notifications/a/t"
ROOM = "\u200b"
DETAILS = {
    "slack": ({}, {"url": "https://hooks.slack.example/services/x"}),
    "teams": ({}, {"url": "https://flows.example/invoke?sig=s"}),
    "discord": ({"thread_id": "7"}, {"url": "https://discord.com/api/webhooks/1/tok-en/slack"}),
    "ntfy": ({"topic": "shop-7dk2"}, {"token": "tk_secret"}),
    "telegram": ({"chat_id": "-100123"}, {"token": f"1:{'a' * 35}"}),
    "pagerduty": ({"region": "eu"}, {"routing_key": "k" * 32}),
    "webhook": ({}, {"url": "https://example.org/hook"}),
}


def message(**fields):
    values = {
        "tag": "CRITICAL",
        "headline": "Disk full",
        "project": {"name": "shop", "path_with_namespace": "acme/shop"},
        "url": URL,
        "lines": ("/var is at 97 %",),
        "facts": (("Environment", "production"),),
        "severity": "critical",
        "environment": "production",
        "reference": "alert-123",
        "items": (
            {"event": "alert_triggered", "object_attributes": {"iid": 12, "hosts": ["web01"], "service": "disk"}},
        ),
        "at": "2027-03-04T05:06:07.000Z",
    }
    return ChannelMessage(**values | fields)


def request_of(type_, sent, **settings):
    plain, secrets = DETAILS[type_]
    data = ChannelData(1, "ops", plain | settings, secrets)
    outgoing = Outgoing(sent, data, "uuid", Policy(), ACKNOWLEDGE)
    return KINDS[type_].request(outgoing)


def body_of(type_, sent=None, **settings):
    return exact_json.loads(request_of(type_, sent or message(), **settings).body)


def outcome(type_, status, text="", **headers):
    found = KINDS[type_].outcome(Answer(status, text, headers))
    return found.result, found.retry_after_seconds


def test_slack_gets_a_text_and_one_attachment(app):
    assert body_of("slack", channel="#ops") == {
        "text": "*[CRITICAL]* Disk full — shop",
        "attachments": [
            {
                "fallback": "[CRITICAL] Disk full — shop",
                "color": "#8b2615",
                "mrkdwn_in": ["text"],
                "text": f"/var is at 97 %\n<{URL}|Open> · <{ACKNOWLEDGE}|Acknowledge>",
                "fields": [{"title": "Environment", "value": "production", "short": True}],
                "footer": "shop",
                "ts": 1804136767,
            }
        ],
        "channel": "#ops",
    }


def test_teams_gets_an_adaptive_card_in_either_style(app):
    sent = body_of("teams")
    card = sent["attachments"][0]["content"]

    assert (sent["type"], sent["attachments"][0]["contentUrl"]) == ("message", None)
    assert card["body"][0] == {
        "type": "TextBlock",
        "text": "[CRITICAL] Disk full",
        "weight": "Bolder",
        "size": "Medium",
        "wrap": True,
        "style": "heading",
        "color": "Attention",
    }
    assert card["body"][-1] == {"type": "FactSet", "facts": [{"title": "Environment", "value": "production"}]}
    assert [action["title"] for action in card["actions"]] == ["Open", "Acknowledge"]
    assert body_of("teams", body_style="card") == card


def test_a_card_is_small_enough(app):
    long = message(lines=tuple("€" * 500 for _ in range(100)))

    assert len(request_of("teams", long).body) <= 24 << 10


def test_discord_gets_an_embed_that_mentions_nobody(app):
    request = request_of("discord", message())
    sent = exact_json.loads(request.body)

    assert request.url == "https://discord.com/api/webhooks/1/tok-en?wait=true&thread_id=7"
    assert (sent["content"], sent["allowed_mentions"]) == ("", {"parse": []})
    assert sent["embeds"][0] == {
        "title": "[CRITICAL] Disk full",
        "url": URL,
        "description": f"/var is at 97 %\n[Acknowledge]({ACKNOWLEDGE})",
        "color": 9119253,
        "fields": [{"name": "Environment", "value": "production", "inline": True}],
        "footer": {"text": "shop"},
        "timestamp": "2027-03-04T05:06:07Z",
    }
    [embed] = body_of("discord", message(headline="*" * 300, lines=("_" * 5000,)))["embeds"]
    assert (len(embed["title"]) <= 256, len(embed["description"]) <= 4096) == (True, True)


def test_ntfy_gets_priority_tags_and_actions(app):
    request = request_of("ntfy", message())

    assert (request.url, request.headers) == ("https://ntfy.sh/", {"Authorization": "Bearer tk_secret"})
    assert exact_json.loads(request.body) == {
        "topic": "shop-7dk2",
        "title": "[CRITICAL] Disk full",
        "message": "shop · production\n/var is at 97 %",
        "priority": 5,
        "tags": ["rotating_light"],
        "click": URL,
        "actions": [
            {"action": "view", "label": "Open", "url": URL},
            {"action": "http", "label": "Acknowledge", "url": ACKNOWLEDGE, "method": "POST", "clear": True},
        ],
    }
    assert len(body_of("ntfy", message(lines=("€" * 4000,)))["message"].encode()) <= 4000


def test_telegram_gets_html_and_buttons(app):
    request = request_of("telegram", message())

    assert request.url == f"https://api.telegram.org/bot1:{'a' * 35}/sendMessage"
    assert exact_json.loads(request.body) == {
        "chat_id": -100123,
        "text": "<b>[CRITICAL] Disk full</b>\nshop · production\n/var is at 97 %",
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
        "disable_notification": False,
        "reply_markup": {
            "inline_keyboard": [[{"text": "Open", "url": URL}, {"text": "Acknowledge", "url": ACKNOWLEDGE}]]
        },
    }
    assert len(body_of("telegram", message(lines=("<" * 4000,)))["text"]) <= 4096
    assert "reply_markup" not in body_of("telegram", message(url="http://localhost/x"))


def test_pagerduty_gets_a_trigger_and_a_resolve_with_the_same_key(app):
    triggered = body_of("pagerduty")
    resolved = body_of("pagerduty", message(state=ENDED))

    assert request_of("pagerduty", message()).url == "https://events.eu.pagerduty.com/v2/enqueue"
    assert triggered["payload"] == {
        "summary": "[CRITICAL] Disk full — shop",
        "source": "web01",
        "severity": "critical",
        "timestamp": "2027-03-04T05:06:07.000+0000",
        "component": "disk",
        "group": "production",
        "custom_details": {"iid": 12, "hosts": ["web01"], "service": "disk"},
    }
    assert triggered["links"] == [{"href": URL, "text": "Alert #12"}]
    assert resolved == {
        "routing_key": "k" * 32,
        "event_action": "resolve",
        "dedup_key": triggered["dedup_key"],
    }


def test_texts_of_payloads_mention_nobody_and_link_nowhere(app):
    hostile = message(headline=HOSTILE, lines=(HOSTILE,))

    slack, discord = body_of("slack", hostile), body_of("discord", hostile)
    telegram, teams = body_of("telegram", hostile), body_of("teams", hostile)

    assert f"&lt;!channel&gt; @{ROOM}everyone *{ROOM}x*{ROOM}" in slack["text"]
    assert "\\[a\\]\\(http://evil\\)" in discord["embeds"][0]["title"]
    assert "&lt;!channel&gt; @everyone *x* &lt;b&gt;" in telegram["text"]
    assert "\\[a\\]\\(http://evil\\)" in teams["attachments"][0]["content"]["body"][0]["text"]


def test_answers_mean_delivered_again_or_final():
    for type_, status, text, expected in (
        ("slack", 200, "ok", DeliveryResult.DELIVERED),
        ("slack", 200, '{"success":true}', DeliveryResult.DELIVERED),
        ("slack", 200, '{"success":false}', DeliveryResult.FINAL),
        ("slack", 404, "no_service", DeliveryResult.FINAL),
        ("teams", 202, "", DeliveryResult.DELIVERED),
        ("discord", 204, "", DeliveryResult.DELIVERED),
        ("discord", 404, '{"code":10015}', DeliveryResult.FINAL),
        ("ntfy", 507, "", DeliveryResult.AGAIN),
        ("telegram", 200, '{"ok":true}', DeliveryResult.DELIVERED),
        ("telegram", 400, '{"ok":false,"description":"chat not found"}', DeliveryResult.FINAL),
        ("telegram", 400, '{"parameters":{"migrate_to_chat_id":-5}}', DeliveryResult.AGAIN),
        ("pagerduty", 202, "", DeliveryResult.DELIVERED),
        ("pagerduty", 400, "", DeliveryResult.FINAL),
        ("webhook", 204, "", DeliveryResult.DELIVERED),
        ("webhook", 302, "", DeliveryResult.FINAL),
        ("webhook", 503, "", DeliveryResult.AGAIN),
        ("webhook", None, "", DeliveryResult.AGAIN),
    ):
        assert (type_, status, outcome(type_, status, text)[0]) == (type_, status, expected)


def test_services_say_when_to_come_again():
    for type_, text, headers, seconds in (
        ("slack", "", {"Retry-After": "30"}, 30),
        ("discord", '{"retry_after":1.5}', {}, 1.5),
        ("telegram", '{"parameters":{"retry_after":7}}', {}, 7),
    ):
        assert outcome(type_, 429, text, **headers) == (DeliveryResult.AGAIN, seconds)
