"""What BGP speakers say, as records, and the wire formats that it comes in (start at `record`)."""
