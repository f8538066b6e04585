"""What an alert causes elsewhere: incidents, messages, web hooks."""
