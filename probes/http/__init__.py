"""HTTP/1.1, 2 and 3 on a connection of our own, and the `http` probe."""
