"""Access control: abilities and their rules, the caller, and the blueprints that check every request."""
