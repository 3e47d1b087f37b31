"""The proof that the switches don't change the text: arms, which are run, what they gave, what it covers."""
