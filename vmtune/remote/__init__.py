"""What any client of the service needs, whatever it speaks HTTP with: addresses, credentials,
errors, the event stream, retries. Pure but for :mod:`.credentials` and :mod:`.token_file`, which
read files.

Shared by the command (``vmtune.client``) and by the package ``vmtune-client``, which has this
folder and ``vmtune/errors.py`` by links: so imports here are relative, and of these two alone.
"""
