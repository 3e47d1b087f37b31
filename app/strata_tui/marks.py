"""What a line ends with whose times are not plainly this machine's."""

EMULATED = " [emulated]"  # those of another rig, which devices here are held to
COMPUTED_HERE = " [computed here]"  # measured, beside emulated ones
