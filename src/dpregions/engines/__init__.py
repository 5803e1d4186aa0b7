"""Where regions are counted: batches of outlines -> one for each user -> one tally. Secret.

`choice.tally_of` counts anything where it is: `local` in threads, `spark` on Spark. `contributions`
and `worker` are what every engine runs on its batches (docs/how-to/engines.md).
"""
