"""Alerts to people: a file of rules, what is looked at, and who is told (docs/alerts.md).

rules_file, receiver_file   the file
statuses                    what agents say of themselves
watching                    looks again and again; replaying: what would have been told
outbox                      messages until their receiver has them
webhook, alertmanager, mail receivers
"""
