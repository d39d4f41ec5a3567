"""Hits and near misses of each class of data. The numbers are test numbers of the card schemes."""

HITS = {
    "PCI": [
        "4111111111111111",
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "card:5555555555554444,",
        "2223 0031 2200 3222",
        "3782 822463 10005",
        "378282246310005",
        "6011111111111117",
        "3056 930902 5904",
        "3566002020360505",
        "6205500000000000004",
        "line\n4012888888881881\n",
        "2024 4111 1111 1111 1112 4111 1111 1111 1111",
    ],
    "PII.ssn": ["219-09-9999", "SSN: 078-05-1120.", "id\n123-45-6789\n", "(899-99-9999)"],
    "PII.email": [
        "kim@example.com",
        "mail Kim <kim.lee+x@mail.example.co.uk>, please",
        "mailto:kim@example.org",
        "Email:kim@example.org",
        "to=a_b%c@sub-domain.example.museum;",
    ],
    "PII.phone": [
        "555-123-4567",
        "(212) 555-0123",
        "212.555.0123",
        "1-212-555-0123",
        "+1 212 555 0123",
        "tel:+49 30 1234567",
        "+4915112345678",
        "+44 (0)20 7946 0958",
    ],
}
NEAR_MISSES = {
    "PCI": [
        "4111111111111112",  # a wrong check digit
        "41111111111111111",  # one digit more
        "0.4111111111111111",  # the fraction of a number
        "4111111111111111.5",
        "x4111111111111111",
        "4111111111111111x",
        "4111 111 1111 11111",
        "1700000000000",  # a time in milliseconds
        "1234567812345670",  # right check digit, no card scheme
        "4111-1111-1111-1111-1",
    ],
    "PII.ssn": [
        "000-12-3456",
        "666-12-3456",
        "900-12-3456",
        "123-00-4567",
        "123-45-0000",
        "2024-01-2025",
        "123-45-67890",
        "1123-45-6789",
        "123-45-6789-0",
        "v1.123-45-6789",
    ],
    "PII.email": [
        "git@github.com:acme/x.git",
        "https://user@example.com/repo",
        "https://user:word@example.com/",
        "icon@2x.png",
        "react@18.2.0",
        "@scope/name@1.0.0-rc.1",
        "root@localhost",
        "a@b",
        ".a..b@example.com."[:5],
        "x" * 65 + "@example.com",
    ],
    "PII.phone": [
        "123-456-7890",  # no area code begins with 1
        "192.168.100.2000",
        "2024-01-15",
        "555-1234",
        "5551234567",
        "+1234",
        "a\n+1699999999999",  # a line of a patch
        "1+12125550123",
        "+1234567890123456",
        "555-123-45678",
        "555-123-4567-8",
    ],
}
