"""No section of the former book is lost."""

from sections import places


def test_every_former_section_has_a_place_or_a_reason():
    result = places()
    assert len(result) > 200
    assert [section for section, now in result.items() if not now] == []
