"""What the lab and the pages both need of the machine.

Whole files, locks between processes, processes that end with ours, where files lie, versions and hardware, how reports
look. It stands below both and uses neither; of the rest of isonb it uses :mod:`isonb.errors` alone.
"""
