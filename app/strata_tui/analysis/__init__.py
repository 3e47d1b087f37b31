"""From events to what a screen, a summary or a comparison shows: numpy only, no faces."""
