"""From event to message: compare with rules, add items to groups, build the messages of groups that are due.

Silences hold events back through ``holding.add_holder``: a function that gets the events of one project which are about
to be routed, and returns for the id of each that is held back the ids of the silences that do so. Such an event makes
no item and is stored with these ids. What is to be told at the end of a silence is recorded again, with
``domain.notifications.events.record``: a second ``alert_triggered`` of an alert that is still open. Whether a target
was notified of the opening is in ``NotificationAnnouncement``.
"""
