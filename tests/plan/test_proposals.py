from strata_tui.plan.proposals import as_asked, candidates

ASKED = {"overlap": True, "pipeline_windows": 5, "theta": 0.5, "draft": "mtp", "draft_max": 4}


def test_what_was_asked_for_on_so_many_stages() -> None:
    assert as_asked(8, ASKED) == {"overlap": True, "pipeline_windows": 5, "theta": 0.5, "draft_max": 4}
    assert as_asked(3, ASKED)["pipeline_windows"] == 3
    assert as_asked(1, ASKED) == {"overlap": False, "pipeline_windows": 0, "theta": 0.5, "draft_max": 4}
    none = as_asked(8, {**ASKED, "draft": "none"})
    assert (none["draft_max"], none["pipeline_windows"]) == (0, 0)


def test_a_gate_in_single_precision_is_no_other_gate() -> None:
    asked = as_asked(2, {**ASKED, "theta": 0.20000000298023224})
    assert {one["theta"] for one in candidates(2, asked)} == {0.0, 0.2}


def test_it_comes_first_and_nothing_comes_twice() -> None:
    for n_stages in (1, 2, 3, 8):
        asked = as_asked(n_stages, ASKED)
        found = candidates(n_stages, asked)
        assert found[0] == asked
        assert all(found.count(one) == 1 for one in found)


def test_candidates_of_two_stages() -> None:
    found = candidates(2, as_asked(2, {**ASKED, "theta": 0.2}))
    values = {name: sorted({one[name] for one in found}) for name in found[0]}
    assert values == {
        "overlap": [False, True],
        "pipeline_windows": [0, 2],
        "theta": [0.0, 0.2],
        "draft_max": [1, 2, 4],
    }
    assert len(found) == 3 * 2 * (1 + 2)


def test_eight_stages_have_their_own_depth_too() -> None:
    flights = {
        one["pipeline_windows"] for one in candidates(8, as_asked(8, {**ASKED, "pipeline_windows": 0}))
    }
    assert flights == {0, 2, 3, 4, 8}


def test_one_stage_has_drafts_alone_to_choose() -> None:
    found = candidates(1, as_asked(1, ASKED))
    assert [one["draft_max"] for one in found] == [4, 2, 1]
    assert not any(one["overlap"] or one["pipeline_windows"] for one in found)
