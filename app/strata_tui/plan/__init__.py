"""Where the layers go and which switches to set: measured first, then predicted, then measured again."""
