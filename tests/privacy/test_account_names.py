"""Names of accounts: one spelling each, nothing invisible, and no two that look alike."""

import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpregions.errors import InputError, LedgerError
from dpregions.privacy.account_names import account_name, look_alike
from dpregions.privacy.budget import PrivacyUnit

USERS = PrivacyUnit()
COMPOSED, TAKEN_APART = "Jos\u00e9", "Jose\u0301"
FORMS = ("NFC", "NFD", "NFKC", "NFKD")


@pytest.mark.parametrize("made", [COMPOSED, TAKEN_APART])
@pytest.mark.parametrize("asked", [COMPOSED, TAKEN_APART])
def test_an_account_is_found_in_either_normal_form_and_cannot_be_opened_twice(ledger, made, asked):
    ledger.create(made, 2)
    with pytest.raises(LedgerError, match="already"):
        ledger.create(asked, 2)
    entry = ledger.debit(asked, 1, USERS, "test")
    assert entry.split("/")[1] == COMPOSED
    ledger.mark_released(unicodedata.normalize("NFD", entry))
    ledger.set_total(asked, 3)
    ledger.check(asked, 2, USERS)
    account = ledger.account(asked)
    assert (account.dataset, account.spent, account.total) == (COMPOSED, 1, 3)
    assert account.entries[1].released
    assert ledger.accounts() == [account]


@pytest.mark.parametrize(
    "other",
    [
        "TAXIS 2 fi",
        "taxis  2 fi",
        "taxis 2 \ufb01",  # the ligature
        "taxis \u00b2 fi",
        "\uff54\uff41\uff58\uff49\uff53 2 fi",  # wide letters
        "\U0001d42d\U0001d41a\U0001d431\U0001d422\U0001d42c 2 fi",  # bold letters
    ],
)
def test_a_new_name_that_people_would_take_for_another_is_refused(ledger, other):
    ledger.create("taxis 2 fi", 1)
    with pytest.raises(LedgerError, match=r"would look like 'taxis 2 fi'.*choose another name"):
        ledger.create(other, 1)
    with pytest.raises(LedgerError, match="it has 'taxis 2 fi'"):
        ledger.debit(other, 1, USERS, "test")
    assert [account.dataset for account in ledger.accounts()] == ["taxis 2 fi"]


def test_names_that_differ_to_the_eye_are_different_accounts(ledger):
    names = ["taxis", "taxis 2", "taxi s", "täxis", "タクシー", "سيارات", "машини", "🚕"]
    for name in names:
        ledger.create(name, 1)
    assert [account.dataset for account in ledger.accounts()] == names


INVISIBLE = {
    "zero width space": "\u200b",
    "zero width joiner": "\u200d",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "left-to-right mark": "\u200e",
    "right-to-left override": "\u202e",
    "isolate": "\u2066",
    "tag letter": "\U000e0061",
    "variation selector": "\ufe0f",
    "more variation selectors": "\U000e0100",
    "Mongolian variation selector": "\u180b",
    "grapheme joiner": "\u034f",
    "Hangul filler": "\u3164",
    "narrow Hangul filler": "\uffa0",
    "Hangul lead filler": "\u115f",
    "Khmer inherent vowel": "\u17b4",
    "blank Braille pattern": "\u2800",
    "no-break space": "\u00a0",
    "line separator": "\u2028",
    "escape": "\x1b",
    "lone surrogate": "\udc80",
    "private use": "\ue000",
}


@pytest.mark.parametrize("what", INVISIBLE)
@pytest.mark.parametrize("name", ["ta{}xis", "{}taxis", "taxis{}", "{}"])
def test_what_is_invisible_in_a_name_is_refused_and_shown(ledger, what, name):
    odd = INVISIBLE[what]
    with pytest.raises(InputError, match="none that is invisible") as refused:
        ledger.create(name.format(odd), 1)
    assert str(refused.value).isascii() and ascii(odd)[1:-1] in str(refused.value)
    assert not ledger.path.exists()


def test_a_mark_that_would_join_the_text_before_the_name_is_refused():
    with pytest.raises(InputError):
        account_name("\u0301taxis")


@given(st.text(min_size=1, max_size=8), st.sampled_from(FORMS))
def test_every_normal_form_of_a_name_is_that_name_or_looks_like_it(text, form):
    try:
        name = account_name(text)
        other = account_name(unicodedata.normalize(form, text))
    except InputError:
        assume(False)
    assert account_name(name) == name
    assert look_alike(other) == look_alike(name)
    if form in ("NFC", "NFD"):
        assert other == name


@given(st.text(max_size=8))
def test_looking_alike_is_settled_at_once(text):
    once = look_alike(text)
    assert look_alike(once) == once
