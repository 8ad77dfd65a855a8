"""Messages that consumers could not handle: redelivered later, then sent to the dead letters."""
