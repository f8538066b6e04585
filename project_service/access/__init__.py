"""Who may do what: abilities and their rules, who is asking, and the blueprints that judge every request."""
