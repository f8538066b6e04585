"""Web hooks: events of projects, groups and the instance, sent to URLs of users."""
