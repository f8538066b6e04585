"""Areas of the product, one package each; no area imports another."""
