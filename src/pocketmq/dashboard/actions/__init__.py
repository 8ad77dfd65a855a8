"""What visitors may change. `desk.Actions` checks that they may, and logs who did what."""
