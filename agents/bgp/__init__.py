"""BGP feeds as they run: sessions, streams and files, into the store."""
