"""What follows a recording, one feature a file: each listens to the events of ``hookviz.recorder.follower``."""
