"""Who may do what on a broker: accounts of 4.x in a file, users and rules of 5.x in the store."""
