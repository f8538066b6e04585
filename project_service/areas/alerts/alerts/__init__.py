"""Alerts as users see and change them: the list, one alert, incidents, to-do items, mails."""
