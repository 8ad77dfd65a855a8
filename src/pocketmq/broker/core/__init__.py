"""What the broker's features share: clocks, alarms, saving, answers. Knows no broker."""
