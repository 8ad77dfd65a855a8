"""What the broker's features share: clocks, alarms, saving, answers. Independent of the broker."""
