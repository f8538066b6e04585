"""Who a request comes from, and how many are admitted."""
