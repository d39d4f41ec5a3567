"""A snapshot that went through JSON decides as the one that was compiled (Pack 2.6)."""

import msgspec
from hypothesis import given
from tests.differential import generated
from tests.differential.driving import Product, answers, identity_of
from tests.differential.generated import drawn

from subluminal.contracts.bundle import Bundle
from subluminal.contracts.vocabulary import Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.evaluation import Engine
from subluminal.policy.snapshot import Snapshot


@given(drawn(generated.layers), drawn(generated.identity), drawn(generated.calls))
def test_a_snapshot_from_json_decides_alike(layers, identity, calls):
    travelled = Product(layers, identity)
    snapshots = []
    for layer, bundle in layers:
        snapshot = compile_bundle(msgspec.convert(bundle, Bundle))
        again = Snapshot.from_json(snapshot.to_json())
        assert again.policy_hash == snapshot.policy_hash
        assert again.to_json() == snapshot.to_json()
        snapshots.append((Layer(layer), again))
    travelled.engine = Engine(snapshots, identity_of(identity))

    assert list(answers(travelled, calls)) == list(answers(Product(layers, identity), calls))
