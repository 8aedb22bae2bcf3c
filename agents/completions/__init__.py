"""A small OpenAI-compatible server whose timing follows a script: to test what measures them."""
