"""What the lab and the pages both need of the machine: whole files, locks between processes, versions and hardware.

It stands below both and uses neither; of the maths it uses :mod:`isonb.checks` alone.
"""
