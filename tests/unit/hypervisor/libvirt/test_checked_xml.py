"""XML from elsewhere: what could harm who reads it is refused, by name."""

from __future__ import annotations

from xml.dom import minidom
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vmtune.errors import InvalidInput
from vmtune.hypervisor.libvirt import checked_xml as xml_checked
from vmtune.hypervisor.libvirt import domain_xml as libvirt_xml
from vmtune.hypervisor.libvirt.checked_xml import check_xml
from vmtune.hypervisor.libvirt.domain_xml_edit import edit_boot_xml

LAUGHS = """<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;">]><domain>&c;</domain>"""
READS = '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><domain><name>&x;</name></domain>'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LAUGHS, "document type"),
        (READS, "document type"),
        ("<!DOCTYPE domain><domain/>", "document type"),
        ("<a>" * 101 + "</a>" * 101, "nested more than 100 deep"),
        ("<domain>", "line 1"),
        ("", "line 1"),
        ("<domain>\ud800</domain>", "line 1"),
        ("<domain>\0</domain>", "line 1"),
        ("<domain>&unknown;</domain>", "line 1"),
        ("<domain><m:x/></domain>", "line 1"),
        ("<domain m:x='1'/>", "line 1"),
        ("<domain xmlns:m='a b'/>", "line 1|space"),
        ("<domain xmlns='a}b'/>", "a space or a brace"),
    ],
)
def test_what_could_harm_is_refused_and_says_why(text: str, why: str) -> None:
    for read in (check_xml, libvirt_xml.parse, lambda given: edit_boot_xml(given, [])):
        with pytest.raises(InvalidInput, match=why) as caught:
            read(text)
        assert caught.value.problems[0].code == "xml_refused"


def test_what_is_too_large_is_not_even_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_checked, "MAX_BYTES", 1 << 20)
    with pytest.raises(InvalidInput, match="more than 1 MiB"):
        check_xml("<a>" + "x" * (1 << 20))


def test_domains_pass() -> None:
    deep = "<a>" * 100 + "é" + "</a>" * 100
    for text in (deep, '<domain type="kvm"><!-- x --><m:x xmlns:m="u"/></domain>'):
        assert check_xml(text) == text


@example("<a xmlns='}'/>")
@given(st.text(st.sampled_from("<>/!&;adeDOCTYPE[]= \"'?x-:mlns}\n"), max_size=60))
def test_whatever_passes_can_be_read_and_whatever_does_not_is_told(text: str) -> None:
    try:
        check_xml(text)
    except InvalidInput:
        return
    ElementTree.fromstring(text)
    minidom.parseString(text)
