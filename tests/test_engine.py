"""Engine and Session as Python uses them, on small random weights; every arm against plain decoding."""

import itertools
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reference import no_pinning

from strata_tui import Engine, Sampling
from strata_tui.engine import Session, cpu_info
from strata_tui.errors import BadInput, StrataError
from strata_tui.events import EVENT_DTYPE, Finish, Kind, SwitchId, WindowFate
from strata_tui.switches import BY_NAME

ROOT = Path(__file__).parents[1]
ORACLES = Path(__file__).parent / "data" / "oracles"
QWEN35 = ORACLES / "micro-qwen35-friendly.gguf"  # 4 layers and a draft layer that is right part of the time
LLAMA = ORACLES / "micro-llama.gguf"  # no draft layer
PROMPT = [1, 5, 9, 200, 17, 5, 9, 200, 17, 5, 9, 33]
SAMPLINGS = {
    "greedy": Sampling(),
    "sampled": Sampling(temperature=0.8, top_p=0.95, repeat_penalty=1.1, seed=7),
}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open(QWEN35) as engine:
        yield engine


def text_and_state(
    path: Path, sampling: Sampling, n: int = 48, **how: Any
) -> tuple[list[int], Any, dict[str, Any]]:
    with Engine.open(path, **how) as engine:
        session = engine.session()
        tokens = list(session.generate(PROMPT * 3, max_tokens=n, sampling=sampling, ignore_eos=True))
        return tokens, session.fingerprint()["layers"], session.stats()


# -- the one invariant

ARMS: list[dict[str, Any]] = [
    *(
        {"stages": s, "threads": t, "overlap": o}
        for s, t, o in itertools.product((1, 2, 3, 4), (1, 2), (False, True))
    ),
    *({"split": (1, 2), "draft": d, "overlap": True} for d in ("none", "lookup", "replay:0.5", "replay:0")),
    *({"draft_max": n, "overlap": n % 2 == 1} for n in range(8)),
    *({"chunk": c, "short_read": r} for c, r in itertools.product((1, 5, 16, 512), (0, 64))),
    {"draft_min_p": 0.3},
    {"rate": 2000.0, "events": False},
    {"pipeline_max": 4, "stages": 4, "overlap": True},
    *({"isa": isa, "stages": 3} for isa in cpu_info()["isas"] if isa != "portable"),
]


@pytest.mark.parametrize(
    ("path", "kv", "sampling"),
    [
        (QWEN35, "f16", "greedy"),
        (QWEN35, "f16", "sampled"),
        (QWEN35, "f32", "sampled"),
        (LLAMA, "f16", "greedy"),
    ],
    ids=lambda value: getattr(value, "stem", value),
)
def test_text_and_state_are_those_of_plain_decoding(path: Path, kv: str, sampling: str) -> None:
    how = SAMPLINGS[sampling]
    plain = text_and_state(path, how, stages=1, draft="none", kv=kv)
    assert text_and_state(path, how, stages=1, draft="none", kv=kv)[:2] == plain[:2]
    drafted = accepted = overlapped = 0
    for arm in ARMS:
        got = text_and_state(path, how, kv=kv, **arm)
        assert got[:2] == plain[:2], arm
        drafted, accepted = drafted + got[2]["drafted"], accepted + got[2]["accepted"]
        overlapped += got[2]["windows_overlapped"]
    assert 0 < accepted < drafted  # both verdicts were met
    assert overlapped


# -- paced devices


def test_even_devices_are_emulated_and_keep_their_times() -> None:
    even = "even:4+publish=0.5+commit=1+draft=2"
    plain = text_and_state(QWEN35, Sampling(), stages=1)
    for overlap in (False, True):
        with Engine.open(QWEN35, stages=3, devices=even, overlap=overlap) as engine:
            assert engine.emulated
            label = "even 4 ms, publish 0.5 ms, commit 1 ms, draft 2 ms (emulated), cpu 1 thread"
            assert [stage.device for stage in engine.stages] == [label] * 3
            session = engine.session()
            tokens = list(session.generate(PROMPT * 3, max_tokens=48, ignore_eos=True))
            assert (tokens, session.fingerprint()["layers"]) == plain[:2]
            kept = {(k["stage"], k["kind"]): k for k in engine.pace_kept()}
            events = engine.events()
        ran = {
            kind: events[events["kind"] == kind]
            for kind in (Kind.run, Kind.publish, Kind.commit, Kind.draft_step)
        }
        for kind, ms in ((Kind.run, 4.0), (Kind.publish, 0.5), (Kind.commit, 1.0), (Kind.draft_step, 2.0)):
            assert len(ran[kind]) and (ran[kind]["dur_ns"] >= ms * 1e6).all()
        assert kept[0, "forward"]["programs"] == (ran[Kind.run]["stage"] == 0).sum()
        assert kept[254, "draft"]["programs"] == len(ran[Kind.draft_step])
        assert (2, "publish") not in kept  # the last stage hands nothing on


def test_an_even_device_that_is_too_slow_says_so() -> None:
    with Engine.open(QWEN35, stages=1, devices="even:0.001") as engine:
        list(engine.session().generate(PROMPT, max_tokens=8, ignore_eos=True))
        (kept,) = engine.pace_kept()
    assert kept["overruns"] == kept["programs"] > 0
    assert 0 < kept["worst_over_ns"] <= kept["over_ns"]


@pytest.mark.parametrize("seed", range(3))
def test_delayed_devices_change_no_text(seed: int) -> None:
    plain = text_and_state(QWEN35, SAMPLINGS["sampled"], stages=1)
    with Engine.open(QWEN35, stages=3, devices=f"delayed:{seed}+max=0.5", overlap=True) as engine:
        assert not engine.emulated
        assert engine.stages[0].device == f"delayed by seed {seed} (test), cpu 1 thread"
        session = engine.session()
        tokens = session.generate(PROMPT * 3, max_tokens=48, sampling=SAMPLINGS["sampled"], ignore_eos=True)
        assert (list(tokens), session.fingerprint()["layers"]) == plain[:2]
        assert {k["kind"] for k in engine.pace_kept()} == {"forward", "publish", "commit", "draft"}


def test_only_the_programs_that_were_named_are_delayed() -> None:
    with Engine.open(QWEN35, stages=2, devices="delayed:1+only=commit+chance=1", overlap=True) as engine:
        list(engine.session().generate(PROMPT, max_tokens=16, ignore_eos=True))
        assert {k["kind"] for k in engine.pace_kept()} == {"commit"}


def test_the_arms_text_is_no_constant() -> None:
    texts = [text_and_state(QWEN35, SAMPLINGS[name])[0] for name in SAMPLINGS]
    texts.append(text_and_state(QWEN35, Sampling(temperature=0.8, seed=8))[0])
    assert len({tuple(text) for text in texts}) == 3


def test_a_replayed_text_is_drafted_right_and_a_spoilt_one_wrong() -> None:
    right = text_and_state(LLAMA, Sampling(), draft="replay:1")[2]
    wrong = text_and_state(LLAMA, Sampling(), draft="replay:0")[2]
    assert right["accepted"] == right["drafted"] > 0
    assert right["windows"] < 48 / 4
    assert wrong["accepted"] == 0 < wrong["drafted"]


def test_the_embedded_model_s_text_is_that_of_plain_decoding() -> None:
    prompt = "The lighthouse keeper had not spoken to anyone for three weeks when he heard"
    texts = []
    for how in (
        {"stages": 1, "draft": "none"},
        {"stages": 3, "overlap": True},
        {"draft": "lookup", "chunk": 3},
    ):
        with Engine.open(None, events=False, **how) as engine:
            texts.append(list(engine.session().generate(prompt, max_tokens=32, ignore_eos=True)))
    assert texts[1:] == texts[:1] * 2
    assert len(set(texts[0])) > 3


# -- sessions


def test_generate_yields_as_many_tokens_as_asked_for(engine: Engine) -> None:
    session = engine.session()
    tokens = list(session.generate(PROMPT, max_tokens=10, ignore_eos=True))
    assert len(tokens) == 10
    assert session.finish == "length"
    assert session.tokens == PROMPT + tokens
    assert session.stats()["generated"] == 10


def test_a_text_is_encoded(engine: Engine) -> None:
    ids = engine.tokenizer.encode("abc")
    assert ids
    by_text = list(engine.session().generate("abc", max_tokens=6, ignore_eos=True))
    assert list(engine.session().generate(ids, max_tokens=6, ignore_eos=True)) == by_text


def test_an_end_token_ends_the_text_unless_ignored(engine: Engine) -> None:
    noise = Sampling(temperature=100, seed=1)
    session = engine.session()
    tokens = list(session.generate(PROMPT, sampling=noise))
    assert session.finish == "stop"
    assert tokens[-1] in engine.end_tokens
    assert not set(tokens[:-1]) & set(engine.end_tokens)
    on = list(engine.session().generate(PROMPT, max_tokens=len(tokens) + 3, sampling=noise, ignore_eos=True))
    assert on[: len(tokens)] == tokens
    assert len(on) == len(tokens) + 3


def test_without_a_limit_the_context_ends_the_text() -> None:
    with Engine.open(QWEN35, context=40) as engine:
        session = engine.session()
        tokens = list(session.generate(PROMPT, ignore_eos=True))
        assert session.finish == "context"
        assert len(PROMPT) + len(tokens) == 41  # the last token needs no row


def test_a_longer_prompt_reads_only_what_is_new(engine: Engine) -> None:
    session = engine.session()
    first = list(session.generate(PROMPT, max_tokens=8, ignore_eos=True))
    longer = [*PROMPT, *first, 3, 4, 5]
    on = list(session.generate(longer, max_tokens=8, ignore_eos=True))
    assert session.stats()["cached_tokens"] >= len(PROMPT)
    assert list(engine.session().generate(longer, max_tokens=8, ignore_eos=True)) == on


def test_closing_the_iterator_cancels(engine: Engine) -> None:
    engine.switches.rate = 200
    session = engine.session()
    tokens = session.generate(PROMPT, max_tokens=100_000, ignore_eos=True)
    next(tokens)
    tokens.close()
    assert not session.running
    assert session.finish == "cancel"
    assert session.stats()["generated"] < 1000
    engine.switches.rate = 0
    assert len(list(engine.session().generate(PROMPT, max_tokens=4, ignore_eos=True))) == 4


def test_ctrl_c_while_waiting_cancels(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.switches.rate = 50
    session = engine.session()
    wait, calls = Session.wait, itertools.count()

    def interrupted(self: Session, timeout_s: float) -> bool:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return wait(self, timeout_s)

    monkeypatch.setattr(Session, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(session.generate(PROMPT, max_tokens=100_000, ignore_eos=True))
    assert session.finish == "cancel"


def test_a_cancel_in_the_middle_of_a_prompt() -> None:
    with Engine.open(context=4096, chunk=16) as engine:  # the embedded model: its prompts take a while
        session = engine.session()
        session.start(list(range(4000)), max_tokens=5)
        session.cancel()
        assert session.to_the_end() == []
        assert session.finish == "cancel"
        assert session.position < 4000
        assert list(engine.session().generate([1, 2, 3], max_tokens=2, ignore_eos=True))


def test_a_failed_stage_ends_the_session_and_not_the_engine(engine: Engine) -> None:
    engine.switches.overlap = True
    plain = list(engine.session().generate(PROMPT, max_tokens=20, ignore_eos=True))
    engine.native.inject_error(1, 0)
    session = engine.session()
    with pytest.raises(StrataError) as failed:
        list(session.generate(PROMPT, max_tokens=20, ignore_eos=True))
    assert not isinstance(failed.value, BadInput)
    assert "\n" not in str(failed.value)
    assert session.finish == "error"
    assert list(engine.session().generate(PROMPT, max_tokens=20, ignore_eos=True)) == plain


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([], "none"),
        ([512], "got 512"),
        ([-1], "got -1"),
        ([1 << 40], "2\\^31"),
        (["a"], "whole numbers"),
        ([1.5], "whole"),
    ],
)
def test_tokens_that_cannot_be_used(engine: Engine, tokens: list[Any], expected: str) -> None:
    with pytest.raises(BadInput, match=expected):
        list(engine.session().generate(tokens, max_tokens=2))
    with pytest.raises(BadInput):
        engine.eval(tokens)


def test_a_prompt_longer_than_the_context() -> None:
    with Engine.open(QWEN35, context=10) as engine, pytest.raises(BadInput, match=r"10 .*12|12 .*10"):
        list(engine.session().generate(PROMPT))


# -- switches


def test_switches_are_live_and_the_flips_are_events(engine: Engine) -> None:
    plain = list(engine.session().generate(PROMPT, max_tokens=200, ignore_eos=True))
    engine.events()
    engine.switches.rate = 400  # or it has ended before the first token is looked at
    session = engine.session()
    tokens = []
    for token in session.generate(PROMPT, max_tokens=200, ignore_eos=True):
        tokens.append(token)
        engine.switches.overlap = not engine.switches.overlap
        engine.switches.draft_max = len(tokens) % 8
    assert tokens == plain
    events = engine.events()
    flips = events[(events["kind"] == Kind.toggle) & (events["a"] == SwitchId.overlap)]
    assert len(flips)
    assert (np.diff(flips["b"]) != 0).all()  # each one turns it to what it was not
    assert engine.switches.in_force().keys() == BY_NAME.keys()


def test_what_cannot_apply_is_noticed_once() -> None:
    with Engine.open(LLAMA, stages=1, overlap=True, draft="mtp", pipeline_windows=2) as engine:
        list(engine.session().generate(PROMPT, max_tokens=20, ignore_eos=True))
        notices = engine.switches.notices()
        assert len(notices) == 3
        assert engine.switches.notices() == []
        in_force = engine.switches.in_force()
        assert (in_force["overlap"], in_force["draft"], in_force["pipeline_windows"]) == (False, "lookup", 0)
        assert engine.switches.overlap is True  # what was asked for


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("draft", "best"),
        ("draft", 3),
        ("draft_max", 8),
        ("draft_max", -1),
        ("draft_max", "many"),
        ("draft_min_p", float("nan")),
        ("rate", -1.0),
        ("rate", float("inf")),
        ("short_read", 1.5),
        ("pipeline_windows", 33),
    ],
)
def test_an_impossible_value_is_refused_and_the_switch_stays(engine: Engine, name: str, value: Any) -> None:
    before = getattr(engine.switches, name)
    with pytest.raises(BadInput) as refused:
        setattr(engine.switches, name, value)
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)
    assert getattr(engine.switches, name) == before


def test_there_is_no_such_switch(engine: Engine) -> None:
    with pytest.raises(AttributeError, match="overlop"):
        engine.switches.overlop = True
    with pytest.raises(AttributeError, match="overlop"):
        engine.switches.overlop  # noqa: B018
    with pytest.raises(AttributeError, match="overlop"):
        Engine.open(QWEN35, overlop=True)


# -- events


def test_events_tell_the_request(engine: Engine) -> None:
    engine.events()
    session = engine.session()
    tokens = list(session.generate(PROMPT, max_tokens=30, ignore_eos=True))
    events = engine.events()
    assert events.dtype == EVENT_DTYPE
    emitted = events[events["kind"] == Kind.token]
    assert emitted["a"].tolist() == tokens
    assert emitted["b"].tolist() == list(range(len(PROMPT), len(PROMPT) + 30))
    assert (events["kind"] == Kind.verdict).sum() == session.stats()["windows"]
    end = events[events["kind"] == Kind.request_end]
    assert end[["a", "b"]].tolist() == [(Finish.length, 30)]
    assert events["start_ns"].max() <= engine.now_ns()
    assert len(engine.events()) == 0
    assert engine.dropped_events == 0


@pytest.mark.parametrize("rate", [0, 300])
def test_windows_take_all_the_time_that_nothing_was_held_back(rate: float) -> None:
    """Verdict to verdict: what a verdict itself takes is in the next window's time, held time in none's."""
    with Engine.open(QWEN35, stages=2, draft="none", rate=rate) as engine:
        session = engine.session()
        assert len(list(session.generate(PROMPT, max_tokens=40, ignore_eos=True))) == 40
        events, stats = engine.events(), session.stats()
    verdicts = events[events["kind"] == Kind.verdict]
    built = events[(events["kind"] == Kind.window) & (events["b"] != WindowFate.prompt)]
    held = int(events[events["kind"] == Kind.throttle]["dur_ns"].sum())
    assert stats["window_ns"] == sum(stats["window_ns_by_class"])
    last = int(verdicts["start_ns"].max())
    if rate:
        assert held > 0 and stats["window_ns"] <= last - int(events["start_ns"].min()) - held
    else:
        assert stats["window_ns"] >= last - int(built["start_ns"].min())


def test_without_tracing_nothing_is_recorded() -> None:
    with Engine.open(QWEN35, events=False) as engine:
        assert list(engine.session().generate(PROMPT, max_tokens=5, ignore_eos=True))
        assert len(engine.events()) == 0
        engine.tracing = True
        assert list(engine.session().generate(PROMPT, max_tokens=5, ignore_eos=True))
        assert len(engine.events()) > 0


# -- what the system denies


@pytest.mark.skipif(not no_pinning.POSSIBLE, reason="pinning can be refused on Linux with seccomp only")
def test_a_refused_pin_is_said_and_the_text_is_the_same() -> None:
    core = cpu_info()["cores"][0]
    code = f"""if True:
        import sys
        if sys.argv[1] == "refused":
            from tests.reference.no_pinning import refuse_pinning
            refuse_pinning()
        from strata_tui import Engine
        with Engine.open({str(QWEN35)!r}, devices=["cpu:1@{core}", "cpu:1"]) as engine:
            print([stage.pinned for stage in engine.stages], engine.notices(), engine.notices())
            print(list(engine.session().generate({PROMPT}, max_tokens=8)))
        """
    pinned, refused = (
        subprocess.check_output([sys.executable, "-c", code, how], text=True, cwd=ROOT).splitlines()
        for how in ("pinned", "refused")
    )
    assert pinned[0] == "[True, True] [] []"
    line = f"[device] stage 0: the system refused to pin it (cpu 1 thread, core {core}); it runs on any core"
    assert refused[0] == f"[False, True] {[line]} []"
    assert pinned[1] == refused[1]


def test_a_system_without_threads_refuses_in_one_line() -> None:
    code = f"""if True:
        import resource
        from strata_tui import Engine
        from strata_tui.errors import BadInput
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 29),) * 2)
        try:
            Engine.open({str(QWEN35)!r}, context=64, chunk=8)
        except BadInput as error:
            print(error)
        """
    # A thread takes as much address space as the stack's limit says; half of that is left.
    stack = (1 << 30, resource.getrlimit(resource.RLIMIT_STACK)[1])
    line = subprocess.check_output(
        [sys.executable, "-c", code],
        text=True,
        cwd=ROOT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, stack),
    ).strip()
    assert line.startswith("[device] cpu 1 thread: the system gave no further thread"), line


@pytest.mark.parametrize("size", [0, 20_000, -1])
def test_a_file_that_is_shortened_while_it_is_open_ends_the_text_with_a_line(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "m.gguf"
    shutil.copy(QWEN35, path)
    with Engine.open(path, rate=200) as engine:
        text = engine.session().generate(PROMPT, ignore_eos=True)
        next(text)
        os.truncate(path, size if size >= 0 else path.stat().st_size - 1)
        with pytest.raises(StrataError, match=r"m\.gguf: was changed or shortened while it was open"):
            list(text)
        with pytest.raises(StrataError, match="was changed or shortened"):
            list(engine.session().generate(PROMPT, max_tokens=2))
    with Engine.open(QWEN35) as engine:  # another file is another matter
        assert list(engine.session().generate(PROMPT, max_tokens=2, ignore_eos=True))


# -- opening and closing


def test_stages_are_as_placed() -> None:
    with Engine.open(QWEN35, split=(1, 3), devices=("cpu:2", "cpu:1", "cpu"), threads=3) as engine:
        assert [(s.first_layer, s.last_layer) for s in engine.stages] == [(0, 0), (1, 2), (3, 3)]
        assert [s.device for s in engine.stages] == ["cpu 2 threads", "cpu 1 thread", "cpu 3 threads"]
    with Engine.open(QWEN35, split="2", devices="cpu:1,cpu:2") as engine:
        assert [s.device for s in engine.stages] == ["cpu 1 thread", "cpu 2 threads"]
    with Engine.open(QWEN35, split="auto", stages=4) as engine:
        assert len(engine.stages) == 4


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"stages": 5}, "expected 1 to 4"),
        ({"split": (2, 2)}, "ascend"),
        ({"devices": ("cpu",) * 5}, "expected 1 to 4"),
        ({"devices": ("gpu:0",)}, "not in this version"),
        ({"devices": ("cpu:1@4095",)}, "core 4095"),
        ({"kv": "int8"}, "f32 or f16"),
        ({"isa": "mmx"}, "mmx"),
        ({"context": -1}, "--ctx"),
        ({"chunk": 0}, "--chunk"),
        ({"draft": "best"}, "best"),
    ],
)
def test_what_cannot_be_opened_says_why(how: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadInput) as refused:
        Engine.open(QWEN35, **how)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_closed_engine_says_so() -> None:
    engine = Engine.open(QWEN35, rate=200)
    session = engine.session()
    tokens = session.generate(PROMPT, max_tokens=100_000, ignore_eos=True)
    next(tokens)
    engine.close()
    engine.close()
    assert not session.running
    assert session.finish == "cancel"
    for use in (
        engine.session,
        engine.events,
        session.fingerprint,
        engine.switches.in_force,
        engine.switches.notices,
        lambda: engine.switches.overlap,
        lambda: setattr(engine.switches, "overlap", True),
        lambda: session.start(PROMPT),
        lambda: engine.eval(PROMPT),
    ):
        with pytest.raises(StrataError, match="closed"):
            use()


def test_closing_ends_a_text_that_another_thread_reads(engine: Engine) -> None:
    engine.switches.overlap, engine.switches.rate = True, 500
    texts: list[list[int]] = []
    begun = threading.Event()

    def read() -> None:
        texts.append([])
        for token in engine.session().generate(PROMPT, ignore_eos=True):
            texts[0].append(token)
            begun.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(10)
    engine.close()
    reader.join(10)
    assert not reader.is_alive()
    assert 0 < len(texts[0]) < engine.context - len(PROMPT)


def test_an_error_within_the_context_closes_the_engine() -> None:
    with pytest.raises(ZeroDivisionError), Engine.open(QWEN35) as engine:
        next(engine.session().generate(PROMPT, ignore_eos=True))
        raise ZeroDivisionError
    with pytest.raises(StrataError, match="closed"):
        engine.session()


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, strata_tui.cli.group, strata_tui.cli.run_command, strata_tui.cli.open_command; "
        "print([m for m in ('numpy', 'textual', 'gguf', 'tokenizers', 'jinja2', 'strata_tui._core') "
        "if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
