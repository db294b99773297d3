import pytest

go_json = pytest.importorskip("go_json")

NUMBERS = [(1.0, "1"), (2.5, "2.5"), (1e20, "100000000000000000000"), (1e21, "1e+21"), (1e-6, "0.000001")]
NUMBERS += [
    (1.5e-7, "1.5e-7"),
    (-0.25, "-0.25"),
    (float(2**53 + 1), "9007199254740992"),
    (1.25e-5, "0.0000125"),
]


@pytest.mark.parametrize("value, text", NUMBERS)
def test_numbers(value, text):
    assert go_json.number(value) == text


def test_text():
    assert go_json.encode({"b": "<a&b>\u2028é\n", "a": [None, True, 3]}) == (
        '{"b":"\\u003ca\\u0026b\\u003e\\u2028é\\n","a":[null,true,3]}'
    )
    assert go_json.encode(go_json.by_key({"b": 1, "a": {"d": 1, "c": 2}})) == '{"a":{"c":2,"d":1},"b":1}'


DURATIONS = [
    (1500, "1.5s"),
    (30_000, "30s"),
    (60_000, "1m0s"),
    (90_500, "1m30.5s"),
    (3_600_000, "1h0m0s"),
    (300, "300ms"),
]


@pytest.mark.parametrize("milliseconds, text", DURATIONS)
def test_durations(milliseconds, text):
    assert go_json.duration(milliseconds) == text


ERRORS = {
    b"": "EOF",
    b'{"a":': "unexpected EOF",
    b'{"a":1,}': "invalid character '}' looking for beginning of object key string",
    b"hi\n": "invalid character 'h' looking for beginning of value",
    b'{"a" 1}': "invalid character '1' after object key",
    b'{"a":1 "b":2}': "invalid character '\"' after object key:value pair",
    b"[NaN]": "invalid character 'N' looking for beginning of value",
    b'{"a":1} trailing': None,
}


@pytest.mark.parametrize("data", ERRORS)
def test_decoding_errors(data):
    assert go_json.decoding_error(data) == ERRORS[data]


def test_times():
    assert go_json.time_nanoseconds(1_790_245_000_500_000_000) == "2026-09-24T10:16:40.5Z"
    assert go_json.time_seconds(1_790_245_000_999_999_999) == "2026-09-24T10:16:40Z"
