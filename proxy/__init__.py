"""What happened: the proxy between agents and their provider, its log, its drivers."""
