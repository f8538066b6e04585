"""Who is notified of alerts, errors, findings and incidents: channels, rules, personal settings, messages.

An event row (``domain.notifications.events``) is written in the transaction of a change. ``routing`` compares it with
the rules and adds an item to the group of each target; a group that is due becomes a message, which the delivery engine
sends (``kit.deliveries``). Each of these steps is one commit (notifications reference, section 2).
"""
