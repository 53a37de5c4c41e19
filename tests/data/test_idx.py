import pytest

from lit_byz.data._idx import parse_idx


@pytest.mark.parametrize(
    "content",
    [b"\x00\x00\x0d\x01\x00\x00\x00\x01\x00", b"\x89PNG", bytes([0, 0, 8, 1, 0, 0, 0, 9, 1])],
    ids=["floats", "another format", "too short"],
)
def test_anything_but_bytes_in_full_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):
        parse_idx(content)
