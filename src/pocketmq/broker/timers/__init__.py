"""Messages with a delivery time of their own, and recalling them."""
