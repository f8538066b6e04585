"""OAuth tokens that are exchanged for passwords."""
