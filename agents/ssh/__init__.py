"""Region hosts over SSH: with nothing installed there before, and nothing left unless asked."""
