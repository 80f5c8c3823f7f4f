"""Requests that take effect also where nobody waits for their answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from vmtune.client.connection.errors import ClientError, may_have_begun


@contextmanager
def ordering(does: str, look: str, then: str = "") -> Iterator[None]:
    """Around a request: where it is interrupted, or no whole answer comes, say that the service
    may go on. It does not notice that the client has left.

    :param does: what the service does, such as ``start the migration``.
    :param look: the command that shows whether it did.
    :param then: what may be done about it, with its command.
    """
    hint = f"The service may {does} all the same. To see it: {look}"
    hint = f"{hint}; {then}" if then else hint
    try:
        yield
    except ClientError as error:
        if may_have_begun(error):
            click.echo(hint, err=True)
        raise
    except KeyboardInterrupt:
        click.echo(f"\n{hint}", err=True)
        raise
