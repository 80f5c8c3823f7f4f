"""Which kernels make VMs boot slowly: by version, and where no version can tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.model.doctor.kernel import FIXED_BY, KernelVersion, SrcuState, judge_srcu

AFFECTED, FIXED = SrcuState.AFFECTED, SrcuState.FIXED
BEFORE, UNKNOWN = SrcuState.BEFORE, SrcuState.UNKNOWN

KERNELS = [
    # Linus's own.
    ("5.18.0", BEFORE), ("5.18", BEFORE), ("4.19.0", BEFORE),
    ("5.19.0-rc1", AFFECTED), ("5.19.0-rc7", AFFECTED), ("5.19.0-rc1+", AFFECTED),
    ("5.19.0-rc3-00012-gabcdef012345", AFFECTED),
    ("5.19.0-rc7-00200-gabcdef012345", UNKNOWN), ("5.19.0-rc8", FIXED), ("5.19.0", FIXED),
    ("5.19.17", FIXED), ("6.0.0-rc1", FIXED), ("6.12.0", FIXED),
    ("5.18.0-11572-gabcdef012345", UNKNOWN), ("5.18.0-rc7", UNKNOWN), ("5.15.50", UNKNOWN),
    # Debian.
    ("6.1.0-18-amd64", FIXED), ("6.12.38+deb13-amd64", FIXED), ("5.10.0-28-amd64", UNKNOWN),
    ("5.19.0-rc6-amd64", AFFECTED), ("5.19.0-rc8-amd64", FIXED), ("5.19.0-1-amd64", FIXED),
    # Ubuntu, and its builds of the mainline.
    ("5.15.0-105-generic", UNKNOWN), ("5.19.0-50-generic", FIXED),
    ("5.19.0-051900rc3-generic", AFFECTED), ("5.19.0-051900rc8-generic", FIXED),
    # Fedora and RHEL.
    ("5.19.0-0.rc3.27.fc37.x86_64", AFFECTED), ("5.14.0-427.13.1.el9_4.x86_64", UNKNOWN),
    ("5.19.0-0.rc7.20220720git353f7988dd84.55.fc37.x86_64", UNKNOWN),
    ("5.19.0-0.rc0.20220526gitbabf0bb978e3.4.fc37.x86_64", UNKNOWN),
    ("6.8.5-301.fc40.x86_64", FIXED),
    # Others.
    ("5.19.0-rc3-1.gabcdef0-default", AFFECTED), ("6.18.44-fc-v657", FIXED),
    ("nonsense", UNKNOWN), ("", UNKNOWN), ("5", UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("release", "state"), KERNELS)
def test_each_kernel_is_judged(release: str, state: SrcuState) -> None:
    assert judge_srcu(release, ()).state is state


@pytest.mark.parametrize(("release", "state"), KERNELS)
def test_the_parameters_of_the_mend_prove_it_whatever_the_version(
    release: str, state: SrcuState
) -> None:
    assert judge_srcu(release, FIXED_BY | {"exp_holdoff"}).state is FIXED
    for one in FIXED_BY:
        assert judge_srcu(release, FIXED_BY - {one}).state is state


NUMBERS = st.integers(0, 99)
VENDORS = st.sampled_from(
    [
        "",
        "-amd64",
        "-18-amd64",
        "+deb13-amd64",
        "-105-generic",
        "-427.el9.x86_64",
        "-301.fc40.x86_64",
    ]
)


@given(NUMBERS, NUMBERS, NUMBERS, VENDORS)
def test_versions_read_back_and_keep_their_order(
    major: int, minor: int, patch: int, vendor: str
) -> None:
    text = f"{major}.{minor}.{patch}{vendor}"
    version = KernelVersion.parse(text)
    assert version is not None
    assert (version.major, version.minor, version.patch) == (major, minor, patch)
    assert version.rc is None
    assert not version.snapshot
    state = judge_srcu(text, ()).state
    if (major, minor) >= (5, 19):
        assert state is FIXED
    else:
        assert state is (UNKNOWN if vendor or patch else BEFORE)


@given(st.integers(1, 30), VENDORS)
def test_only_the_first_seven_candidates_of_5_19_are_affected(rc: int, vendor: str) -> None:
    state = judge_srcu(f"5.19.0-rc{rc}{vendor}", ()).state
    assert state is (AFFECTED if rc <= 7 else FIXED)


@given(st.text(max_size=80), st.sets(st.text(max_size=20), max_size=4))
def test_no_text_is_too_much(release: str, parameters: set[str]) -> None:
    assert judge_srcu(release, parameters).reason


@given(st.text(max_size=30))
def test_only_a_named_candidate_of_5_19_is_ever_affected(rest: str) -> None:
    for start in ("5.18", "5.19.1", "6.1.0", "5.15.0", rest):
        if not rest.startswith("5.19"):
            assert judge_srcu(f"{start}-{rest}", ()).state is not AFFECTED
