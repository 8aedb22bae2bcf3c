"""From the bus into the store: acknowledged only after it is durable."""
