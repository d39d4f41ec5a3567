"""The matcher `targets`: any target in a deny, every target in an allow (doors, section 1)."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.policy.bundles import bundle, plain, rule, text, tools
from tests.policy.replay.runs import Record, changes

from subluminal.canonical import digest, encode
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.identity import Identity
from subluminal.contracts.shape import misfits, struct_of
from subluminal.contracts.targets import PathTarget, Targets
from subluminal.contracts.vocabulary import Layer
from subluminal.errors import InvalidInput, SubluminalError
from subluminal.policy.checking import semantic_misfits
from subluminal.policy.compiling import compile_bundle, read_snapshot
from subluminal.policy.costs import rule_costs
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.covering import covers
from subluminal.policy.diff.diffing import diff
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.explaining import as_text, explain
from subluminal.policy.lint.linting import remarks
from subluminal.policy.loading import parse_bundle
from subluminal.policy.replay.comparing import Doubt
from subluminal.policy.replay.hidden_args import PartialArgs
from subluminal.policy.snapshot import SNAPSHOT_FORMAT, TARGETS_FORMAT, Snapshot

GIT = {"program": {"glob": ["git"]}}
WRITES = {"access": ["write"]}
OPAQUE = {"opaque": True}


def about(targets, **more):
    return {"targets": targets, **more}


def touching(*commands, paths=(), hosts=(), opaque=False, roots=("/repo",)):
    return Targets(
        commands=[line.split() for line in commands],
        paths=[PathTarget(path, access) for access, path in paths],
        hosts=list(hosts),
        opaque=opaque,
        why=["a reason"] if opaque else [],
        roots=list(roots),
    )


def decided(*rules, targets, args=None, steps=None):
    engine = Engine([(Layer.USER, compile_bundle(bundle(*rules)))], Identity())
    call = Call("@claude", "Bash", {} if args is None else args, "ab" * 32, targets=targets)
    return engine.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0, steps=steps)


def denies(match, targets):
    return not decided(rule("deny", match=about(match)), targets=targets).forwarded


def allows(match, targets):
    """Whether an allow matches: a deny of everything stands below it."""
    found = decided(rule("allow", match=about(match)), rule("deny"), targets=targets)
    return found.forwarded


@pytest.mark.parametrize(
    ("match", "targets", "wanted"),
    [
        (GIT, touching("git push"), True),
        (GIT, touching("/usr/bin/git push"), True),
        (GIT, touching("ls", "git push"), True),
        (GIT, touching("gitk"), False),
        (GIT, touching(), False),
        ({"argv": {"regex": ["push .*-f"]}}, touching("git push -f"), True),
        ({"argv": {"glob": ["git push*"]}}, touching("/usr/bin/git push"), True),
        ({"argv": {"glob": ["*-f"]}}, touching("git push -f"), True),
        ({"argv": {"glob": ["git"]}}, touching("git"), True),
        ({"argv": {"regex": ["^git .*x"]}}, Targets(commands=[["git", "a\nb", "x"]]), True),
        (GIT | {"argv": {"glob": ["*-f"]}}, touching("rm -f", "git x"), False),
        ({"path": {"glob": ["/etc/*"]}}, touching(paths=[("read", "/etc/a/b")]), True),
        ({"path": {"regex": ["^/etc"]}}, touching(paths=[("read", "/srv/etc")]), False),
        (WRITES, touching(paths=[("read", "/a")]), False),
        (WRITES, touching(paths=[("read", "/a"), ("write", "/a")]), True),
        (WRITES | {"path": {"glob": ["/a"]}}, touching(paths=[("write", "/b"), ("read", "/a")]), False),
        ({"path": {"inside": ["."]}}, touching(paths=[("read", "/repo/x")]), True),
        ({"path": {"inside": ["."]}}, touching(paths=[("read", "/repo")]), True),
        ({"path": {"inside": ["."]}}, touching(paths=[("read", "/repository")]), False),
        ({"path": {"inside": ["/srv/"]}}, touching(paths=[("read", "/srv")]), True),
        ({"path": {"inside": ["/"]}}, touching(paths=[("read", "/srv")]), True),
        ({"path": {"outside": [".", "/tmp"]}}, touching(paths=[("read", "/tmp/x")]), False),
        ({"path": {"outside": [".", "/tmp"]}}, touching(paths=[("read", "/tmp/x"), ("read", "/etc")]), True),
        ({"path": {"outside": ["."]}}, touching(paths=[("read", "/a/x")], roots=["/b", "/a"]), False),
        ({"host": {"glob": ["*.evil"]}}, touching(hosts=["a", "b.evil"]), True),
        ({"host": {"glob": ["evil"]}}, touching(hosts=["a"]), False),
        (GIT | {"host": {"glob": ["*"]}}, touching("git x"), False),
        (GIT | {"host": {"glob": ["*"]}}, touching("git x", hosts=["a"]), True),
        (OPAQUE, touching(opaque=True), True),
        (OPAQUE, touching("git x"), False),
        (OPAQUE | GIT, touching("rm x", opaque=True), False),
        (OPAQUE | GIT, touching("git x", opaque=True), True),
        ({"path": {"glob": ["/etc/*"]}}, touching(opaque=True), False),
    ],
)  # fmt: skip
def test_a_deny_needs_one_target_of_each_kind_that_it_names(match, targets, wanted):
    assert denies(match, targets) is wanted


def test_what_an_opaque_call_is_known_to_touch_still_counts_in_a_deny():
    """Otherwise `git push --force; eval :` would pass a rule against force pushes."""
    assert denies(GIT, touching("git push", "eval :", opaque=True))


@pytest.mark.parametrize(
    ("match", "targets", "wanted"),
    [
        (GIT, touching("git x"), True),
        (GIT, touching("git x", "rm y"), False),
        (GIT, touching("git x", opaque=True), False),
        (GIT, touching(), False),
        (GIT, touching("git x", paths=[("write", "/a")]), False),
        (GIT, touching("git x", hosts=["a"]), False),
        (GIT | {"host": {"glob": ["a"]}}, touching("git x", hosts=["a"]), True),
        (GIT | {"host": {"glob": ["a"]}}, touching("git x"), True),
        (GIT | {"path": {"inside": ["."]}}, touching("git x", paths=[("write", "/repo/a")]), True),
        ({"path": {"inside": ["."]}}, touching(paths=[("read", "/repo/a"), ("read", "/etc")]), False),
        ({"access": ["read"]}, touching(paths=[("read", "/a"), ("write", "/a")]), False),
    ],
)  # fmt: skip
def test_an_allow_needs_every_target(match, targets, wanted):
    """`allow git` does not allow `git x; rm y`, nor what it does not name."""
    assert allows(match, targets) is wanted


@pytest.mark.parametrize("kind", ["tag", "budget", "rate_limit", "breaker", "dedupe"])
def test_other_kinds_need_one_target(kind):
    steps = []
    decided(rule(kind, match=about(GIT)), targets=touching("ls", "git x"), steps=steps)
    assert steps[0].result == "matched"


def test_targets_that_nobody_read_are_opaque():
    assert denies(OPAQUE, None)
    assert not denies(GIT, None)
    assert not allows(GIT, None)


def test_arguments_too_large_to_inspect_follow_decision_on_error():
    engine = Engine(
        [(Layer.USER, compile_bundle(bundle(rule("deny", match=about(GIT)))))], Identity()
    )
    call = Call("@claude", "Bash", None, "ab" * 32)
    found = engine.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0)
    assert found.decision.reason_code == "EVALUATION_ERROR"


def test_arguments_and_targets_are_both_tested():
    match = about(GIT, args={"has_keys": ["x"]})
    assert decided(rule("deny", match=match), targets=touching("git")).forwarded
    assert not decided(rule("deny", match=match), targets=touching("git"), args={"x": 1}).forwarded
    assert decided(rule("deny", match=match), targets=touching("ls"), args={"x": 1}).forwarded


def test_a_step_names_the_clause():
    steps = []
    decided(rule("deny", match=about(GIT)), targets=touching("ls"), steps=steps)
    assert (steps[0].result, steps[0].clause) == ("no match", "targets")


def test_a_tag_by_targets_acts_on_the_rules_below():
    rules = rule("tag", match=about(GIT)), rule("deny", match={"risk_class": ["write_like"]})
    assert not decided(*rules, targets=touching("git x")).forwarded
    assert decided(*rules, targets=touching("ls")).forwarded


def test_no_arguments_are_suggested_where_rules_test_targets():
    """Nobody has read the targets of the suggested arguments."""
    is_two = {"args": {"key_equals": {"x": 2}}}
    changed = rule("deny", match=is_two, suggest={"x": {"set": 1}})
    more = rule("deny", "more", match=about(GIT))
    assert decided(changed, targets=None, args={"x": 2}).decision.hint.suggested_args == {"x": 1}
    found = decided(changed, more, targets=touching("ls"), args={"x": 2}).decision
    assert found.hint is None or found.hint.suggested_args is None


def test_an_engine_says_whether_anybody_asks():
    """The path of a call pays nothing if no rule does."""
    plain_rules = compile_bundle(bundle(rule("deny")))
    asking = compile_bundle(bundle(rule("deny", match=about(GIT, **tools("Bash")))))
    assert not Engine([(Layer.USER, plain_rules)], Identity()).asks_targets
    engine = Engine([(Layer.USER, plain_rules), (Layer.REPOSITORY, asking)], Identity())
    assert engine.asks_targets
    assert engine.needs_targets(Call("@claude", "Bash", {}, ""))
    assert not engine.needs_targets(Call("@claude", "Read", {}, ""))
    assert not engine.needs_targets(Call("@claude", "\ud800", {}, ""))


FULL = {
    "program": {"glob": ["git", "g*", "*t", "[g]it"], "regex": ["^git$"]},
    "argv": {"glob": ["a*b*", "*c*"], "regex": ["push"]},
    "path": {"glob": ["/a/*"], "regex": ["b"], "inside": [".", "/c/"], "outside": ["/d"]},
    "access": ["write", "read"],
    "host": {"glob": ["*"]},
    "opaque": True,
}


def test_a_snapshot_with_targets_comes_back_as_a_bundle():
    for match in (
        FULL,
        OPAQUE,
        GIT,
        {"path": {"inside": ["."]}},
        {"host": {}},
        {"path": {}, **WRITES},
    ):
        snapshot = compile_bundle(bundle(rule("deny", match=about(match))))
        read, again = read_snapshot(snapshot.to_json())
        assert read.policy_hash == compile_bundle(again).policy_hash == snapshot.policy_hash


def test_only_a_snapshot_with_targets_has_the_new_format():
    """Older versions refuse what they would not enforce; other policies keep their hash."""
    with_targets = compile_bundle(bundle(rule("deny", match=about(GIT))))
    without = compile_bundle(
        bundle(rule("deny"), rule("deny", "x", match=about(GIT), enabled=False))
    )
    assert with_targets.data["format"] == TARGETS_FORMAT
    assert without.data["format"] == SNAPSHOT_FORMAT
    assert "targets" not in without.data["rules"][0]["match"]
    assert Snapshot.from_json(with_targets.to_json()).policy_hash == with_targets.policy_hash


def test_a_damaged_snapshot_is_refused():
    data = compile_bundle(bundle(rule("deny", match=about(GIT)))).data
    for broken in ({"program": 7}, 7, {"path": {"names": 7}}, {"program": {"any": 1, "exact": 3}}):
        rules = [{**data["rules"][0], "match": {**data["rules"][0]["match"], "targets": broken}}]
        changed = {**data, "rules": rules}
        with pytest.raises(SubluminalError):
            read_snapshot(encode({**changed, "policy_hash": digest(changed)}))


@pytest.mark.parametrize(
    ("kind", "match", "message"),
    [
        ("deny", {}, "match.targets: says nothing about targets"),
        ("deny", {"opaque": False}, "match.targets: says nothing about targets"),
        ("deny", {"program": {"glob": [""]}}, "match.targets.program.glob.0: invalid glob"),
        ("deny", {"argv": {"regex": ["("]}}, "match.targets.argv.regex.0: invalid regex"),
        ("deny", {"host": {"regex": ["("]}}, "match.targets.host.regex.0: invalid regex"),
        ("deny", {"path": {"glob": ["["]}}, "match.targets.path.glob.0: invalid glob"),
        ("deny", {"path": {"inside": ["src"]}}, "match.targets.path.inside.0: `src` is not a directory"),
        ("deny", {"path": {"outside": ["/a/../b"]}}, "match.targets.path.outside.0: `/a/../b` is not"),
        ("allow", OPAQUE, "match.targets.opaque: can never match in an allow"),
    ],
)  # fmt: skip
def test_impossible_values_are_refused(kind, match, message):
    made = struct_of(plain(rule(kind, match=about(match))), Bundle)
    found = [
        ".".join(map(str, each.path[2:])) + ": " + each.message for each in semantic_misfits(made)
    ]
    assert [each for each in found if each.startswith(message)], found


def test_unknown_fields_are_refused():
    assert misfits(plain(rule("deny", match=about({"programs": {}}))), Bundle)
    with pytest.raises(InvalidInput, match="programs"):
        parse_bundle(text(rule("deny", match=about({"programs": {}}))), "p.json")


def told(*rules):
    data = plain(*rules)
    return [
        each.misfit.message
        for each in remarks(struct_of(data, Bundle), data)
        if each.severity == "warning"
    ]


def test_lint_asks_what_happens_to_opaque_calls():
    message = "no enabled rule says what happens to opaque calls, whose targets cannot be told"
    assert told(rule("deny", match=about(GIT))) == [message]
    assert told(rule("deny", match=about(GIT)), rule("deny", "o", match=about(OPAQUE))) == []
    off = rule("deny", "o", match=about(OPAQUE), enabled=False)
    assert told(rule("deny", match=about(GIT)), off) == [message]


def test_lint_finds_fields_without_an_effect():
    opaque = rule("deny", "o", match=about(OPAQUE))
    both = rule("deny", match=about({"path": {"inside": ["."]}, "access": ["read", "write"]}))
    assert told(both, opaque) == ["has no effect: it names every access"]
    every = rule("deny", match=about({"program": {"glob": ["*"]}, "argv": {"glob": ["x*"]}}))
    assert told(every, opaque) == ["has no effect: it matches every command"]
    named = rule("allow", match=about({"program": {"glob": ["*"]}, "argv": {"glob": ["x*"]}}))
    assert told(named, opaque) == []


def test_lint_does_not_take_an_allow_for_the_shadow_of_a_deny():
    """`git x; rm y` is not matched by the allow, and is by the deny."""
    opaque = rule("deny", "o", match=about(OPAQUE))
    assert told(opaque, rule("allow", match=about(GIT)), rule("deny", match=about(GIT))) == []
    shadowed = told(opaque, rule("deny", match=about(GIT)), rule("deny", "x", match=about(GIT)))
    assert any("has no effect: rule `deny` above" in each for each in shadowed)


@pytest.mark.parametrize(
    ("wide", "narrow", "wanted"),
    [
        (None, GIT, True),
        (GIT, None, False),
        (GIT, GIT, True),
        ({"program": {"glob": ["g*"]}}, GIT, True),
        (GIT, {"program": {"glob": ["g*"]}}, False),
        (GIT, GIT | WRITES, False),
        (GIT | OPAQUE, GIT, False),
        ({"access": ["read", "write"]}, WRITES, True),
        (WRITES, {"access": ["read", "write"]}, False),
        ({"path": {"inside": [".", "/a"]}}, {"path": {"inside": ["."]}}, True),
        ({"path": {"inside": ["."]}}, {"path": {"inside": [".", "/a"]}}, False),
        ({"path": {"inside": ["."]}}, {"path": {"glob": ["/a"]}}, False),
        ({"path": {"outside": ["."]}}, {"path": {"outside": [".", "/a"]}}, True),
        ({"path": {"glob": ["/a*"]}}, {"path": {"glob": ["/ab"], "inside": ["."]}}, True),
        ({"host": {"glob": ["a"]}}, {"host": {"glob": ["b"]}}, False),
    ],
)
def test_one_match_covers_another(wide, narrow, wanted):
    made = [
        bundle(rule("deny", match={} if each is None else about(each))).rules[0].match
        for each in (wide, narrow)
    ]
    assert covers(*made) is wanted


def test_diff_tells_that_a_deny_was_narrowed():
    old = bundle(rule("deny", match=about({"program": {"glob": ["g*"]}})))
    new = bundle(rule("deny", match=about(GIT)))
    (change,) = diff(old, new)
    assert "narrowed" in change.summary
    assert "targets" in change.summary


def test_patterns_about_targets_cost_more_than_those_about_names():
    """They are matched against all the text of a call's targets."""
    by_name = bundle(rule("deny", match={"tool_name": {"regex": ["a.*b"]}}))
    by_target = bundle(
        rule("deny", match=about({"argv": {"regex": ["a.*b"]}, "path": {"glob": ["x"]}}))
    )
    assert rule_costs(by_target)[0].total > 20 * rule_costs(by_name)[0].total


def test_an_explanation_shows_the_targets():
    snapshot = compile_bundle(bundle(rule("deny", match=about(OPAQUE))))
    targets = touching("git x", paths=[("read", "/a")], opaque=True)
    found = explain(snapshot, Identity(), ("@claude", "Bash", {}), wall_ms=0, targets=targets)
    assert found.plain()["targets"]["paths"] == [{"path": "/a", "access": "read"}]
    assert "  opaque: a reason" in as_text(found)
    assert explain(snapshot, Identity(), ("s", "t", {}), wall_ms=0).plain()["targets"] is None


def replayed(*rules, recorded=lambda call: call, read_later=None):
    record = Record((Layer.REPOSITORY, compile_bundle(bundle())))
    record.call("push", {})
    record.items[0] = recorded(record.items[0])
    rows, _, _ = record.replay(compile_bundle(bundle(*rules)), read_later=read_later)
    return rows[0]


def test_replay_uses_the_recorded_targets():
    deny = rule("deny", match=about(GIT))
    row = replayed(deny, recorded=lambda call: replace(call, targets=touching("git x")))
    assert changes([row]) == ["newly_blocked"]
    row = replayed(deny, recorded=lambda call: replace(call, targets=touching("ls")))
    assert changes([row]) == ["same"]


def test_replay_is_undetermined_without_targets():
    deny = rule("deny", match=about(GIT))
    row = replayed(deny)
    assert (changes([row]), row.doubt) == (["undetermined"], Doubt.ARGUMENTS)
    # Two rules with the same test get the same answer, and one that decides in any case settles it.
    row = replayed(
        deny,
        rule("allow", match={}),
        rule("deny", "x", match=about(GIT)),
        recorded=lambda call: call,
    )
    assert changes([row]) == ["undetermined"]
    row = replayed(rule("allow", match={}), deny)
    assert changes([row]) in (["same"], ["changed"])


def test_replay_gives_up_on_too_many_possibilities():
    rules = [
        rule("tag", f"tag{number}", match=about({"program": {"glob": [f"p{number}"]}}))
        for number in range(8)
    ]
    row = replayed(*rules)
    assert changes([row]) == ["undetermined"]


def test_replay_gives_up_on_too_many_arguments():
    rules = [
        rule("tag", f"tag{number}", match=about(GIT, args={"has_keys": [f"k{number}"]}))
        for number in range(8)
    ]
    hidden = PartialArgs({}, lambda _key: True)
    row = replayed(*rules, recorded=lambda call: replace(call, args=hidden))
    assert changes([row]) == ["undetermined"]


def test_replay_reads_targets_that_are_not_on_record():
    deny, writes = rule("deny", match=about(GIT)), rule("deny", match=about(WRITES))
    allow = rule("allow", match=about(GIT)), rule("deny", "below")

    def whole(*_asked):
        return touching("git x"), True

    def but_for_paths(*_asked):
        return touching("git x"), False

    def nothing(*_asked):
        return None

    def told(*rules, read_later):
        return changes([replayed(*rules, read_later=read_later)])[0]

    assert told(deny, read_later=whole) == "newly_blocked"
    assert told(writes, read_later=whole) == "same"
    assert told(deny, read_later=but_for_paths) == "newly_blocked"
    assert told(writes, read_later=but_for_paths) == "undetermined"
    assert told(*allow, read_later=but_for_paths) == "undetermined"
    assert told(deny, read_later=nothing) == "undetermined"


def test_replay_does_not_read_targets_from_arguments_that_are_masked():
    hidden = PartialArgs({}, lambda _key: True)
    row = replayed(
        rule("deny", match=about(GIT)),
        recorded=lambda call: replace(call, args=hidden),
        read_later=lambda *_: pytest.fail("the arguments are not known"),
    )
    assert changes([row]) == ["undetermined"]


_GLOBS = st.sampled_from(
    ["git", "g*", "*t", "*i*", "*", "rm", "git push*", "/a/*", "/a", "*.b", "h"]
)
_NAMES = st.lists(_GLOBS, min_size=1, max_size=2).map(lambda globs: {"glob": globs})
_DIRECTORIES = st.lists(st.sampled_from([".", "/a", "/b", "/"]), min_size=1, max_size=2)
_MATCHES = st.fixed_dictionaries(
    {},
    optional={
        "program": _NAMES,
        "argv": _NAMES,
        "path": st.fixed_dictionaries(
            {}, optional={"glob": st.lists(_GLOBS, min_size=1, max_size=2), "inside": _DIRECTORIES, "outside": _DIRECTORIES}
        ),
        "access": st.lists(st.sampled_from(["read", "write"]), min_size=1, unique=True),
        "host": _NAMES,
    },
).filter(bool)  # fmt: skip
_FOUND = st.builds(
    touching,
    st.sampled_from(["git push", "/usr/bin/git push -f", "rm /a", "ls"]),
    paths=st.lists(st.tuples(st.sampled_from(["read", "write"]), st.sampled_from(["/a", "/a/x", "/b/y", "/repo/z.b"])), max_size=3),
    hosts=st.lists(st.sampled_from(["h", "a.b"]), max_size=2),
    opaque=st.booleans(),
)  # fmt: skip


def naively(match, found, *, every):
    """The matcher as the page says it, once more."""
    lists = [("commands", found.commands), ("paths", found.paths), ("hosts", found.hosts)]
    named = {"commands": {"program", "argv"}, "paths": {"path", "access"}, "hosts": {"host"}}

    def holds(kind, target):
        if kind == "commands":
            texts = {"program": target[0].split("/")[-1]}
            texts["argv"] = " ".join([texts["program"], *target[1:]])
        elif kind == "hosts":
            texts = {"host": target}
        else:
            return in_path(match.get("path", {}), target.path) and target.access in match.get(
                "access", ["read", "write"]
            )
        return all(
            any(fnmatchcase(text, glob) for glob in match[name]["glob"])
            for name, text in texts.items()
            if name in match
        )

    def in_path(spec, path):
        def inside(folders):
            roots = ["/repo" if folder == "." else folder for folder in folders]
            return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)

        return (
            ("glob" not in spec or any(fnmatchcase(path, glob) for glob in spec["glob"]))
            and ("inside" not in spec or inside(spec["inside"]))
            and ("outside" not in spec or not inside(spec["outside"]))
        )

    if every:
        return not found.opaque and all(
            (named[kind] & match.keys()) and holds(kind, target)
            for kind, all_ in lists
            for target in all_
        )
    return all(
        any(holds(kind, each) for each in all_)
        for kind, all_ in lists
        if named[kind] & match.keys()
    )


@given(_MATCHES, _FOUND)
def test_the_matcher_agrees_with_a_plain_one(match, found):
    assert denies(match, found) is naively(match, found, every=False)
    assert allows(match, found) is naively(match, found, every=True)
