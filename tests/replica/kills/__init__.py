"""kill -9 of real replicas at random moments, beside the emulated replica on what each kill left.

`python -m tests.replica.kills check --count 30 --seed 20260101` draws configurations, traffic,
second kills and damage from the seed, makes the kills, and prints how many agree by configuration;
1 is returned where one does not. `make kills` makes 500.
"""
