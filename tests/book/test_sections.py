"""No section of the former book is lost."""

from sections import places


def test_every_former_section_has_a_place_or_a_reason():
    found = places()
    assert len(found) > 200
    assert [section for section, now in found.items() if not now] == []
