"""Migrate a VM with the client that openapi-python-client generated.

python migrate.py URL TOKEN VM DESTINATION
"""

import sys
import time
import uuid

from generated import AuthenticatedClient
from generated.api.migrations import get_migration, start_migration
from generated.models.migration_create import MigrationCreate
from generated.models.migration_state import MigrationState
from generated.models.migration_view import MigrationView
from generated.models.problem_document import ProblemDocument

url, token, vm, destination = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)
key = str(uuid.uuid4())

refused = start_migration.sync(
    client=client, body=MigrationCreate(vm=uuid.UUID(vm), destination="nowhere")
)
assert isinstance(refused, ProblemDocument), refused
print(refused.errors[0].code)

for _ in range(2):  # a repeated request begins nothing more
    made = start_migration.sync(
        client=client,
        body=MigrationCreate(vm=uuid.UUID(vm), destination=destination),
        idempotency_key=key,
    )
    assert isinstance(made, MigrationView), made
    print(made.id)
ENDED = {MigrationState.COMPLETED, MigrationState.FAILED, MigrationState.CANCELLED}
while made.state not in ENDED:
    time.sleep(0.2)
    found = get_migration.sync(made.id, client=client)
    assert isinstance(found, MigrationView), found
    made = found
print(made.state)
