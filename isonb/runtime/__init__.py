"""What the lab and the pages both need of the machine: locks between processes, and processes that end with ours.

It stands below both and uses neither, nor the maths.
"""
