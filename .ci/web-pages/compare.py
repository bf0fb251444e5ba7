"""Prints how much of each page `web_fetch` and trafilatura keep.

A file NAME.txt beside a page NAME.html has a line `+ TEXT` for each text that belongs to the content, and
`- TEXT` for each that does not. Markup is not compared: it is removed from texts and results.
"""

import functools
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

import trafilatura

BASE = "https://valley.example/news/a.html"


def serve(folder):
    """Serves the folder on a free port of the loopback interface."""

    class QuietHandler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(QuietHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def fetch(program, port, name, state):
    """Returns what the tool shows of a page: its title and its text."""
    host = f"127.0.0.1:{port}"
    arguments = json.dumps({"url": f"http://{host}/{name}.html", "max_length": 50_000})
    command = [program, "--config", "/dev/null", "--state-dir", state, "--web-hosts", host, "--yes"]
    command += ["call", "web_fetch", arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stdout}{done.stderr}")
    page = json.loads(done.stdout)["output"]
    head, text = page.split("<untrusted_page>\n", 1)
    title = re.search(r"^Title: (.*)$", head, re.M)
    return (title[1] + "\n" if title else "") + text.rsplit("</untrusted_page>", 1)[0]


def reference(page):
    text = trafilatura.extract(
        page,
        url=BASE,
        output_format="markdown",
        favor_recall=True,
        include_formatting=True,
        include_images=True,
        include_links=True,
        include_tables=True,
    )
    return text or ""


def bare(text):
    """Removes markup, addresses and blanks."""
    text = re.sub(r"\]\([^)\s]*(?:\([^)]*\)[^)\s]*)*(?: \"[^\"]*\")?\)", "]", text)
    text = re.sub(r"```\w*", "", text)
    text = re.sub(r"(?m)^[ >]*\d+\. ", "", text)
    return re.sub(r"[\s*_`#>|\[\]!~^☑☐\\-]", "", text)


def is_comparable(text):
    text = bare(text)
    return len(text) >= 4 and "://" not in text and not text.startswith("/")


def unescape(text):
    return re.sub(r"\\(.)", lambda it: {"n": "\n", "t": "\t"}.get(it[1], it[1]), text)


def words(text):
    """Returns the words of a text, each once: the reference repeats some pages."""
    text = re.sub(r"\]\([^)]*\)", "]", text)
    # Scripts without blanks between words count by letters.
    return set(re.findall(r"[\u3040-\u9fff]|[^\W\u3040-\u9fff]+", text.lower()))


def overlap(one, other):
    """Returns the share of the words of `one` that `other` has, too."""
    return len(one & other) / len(one) if one else 1.0


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    shows_misses = "--show" in sys.argv[3:]
    port = serve(folder)
    pages = sorted(folder.glob("*.html"))
    found = {"web_fetch": [0, 0], "trafilatura": [0, 0]}
    wanted, unwanted = 0, 0
    shares = []
    with tempfile.TemporaryDirectory() as state:
        for page in pages:
            name = page.stem
            lines = page.with_suffix(".txt").read_text().splitlines()
            kept = [unescape(it[2:]) for it in lines if it.startswith("+ ")]
            left_out = [unescape(it[2:]) for it in lines if it.startswith("- ")]
            # Texts that are markup or addresses say nothing about the reference.
            kept = [it for it in kept if is_comparable(it)]
            left_out = [it for it in left_out if is_comparable(it)]
            wanted += len(kept)
            unwanted += len(left_out)
            texts = {"web_fetch": fetch(program, port, name, state), "trafilatura": reference(page.read_bytes())}
            for extractor, text in texts.items():
                text = bare(text)
                missed = [it for it in kept if bare(it) not in text]
                leaked = [it for it in left_out if bare(it) in text]
                found[extractor][0] += len(kept) - len(missed)
                found[extractor][1] += len(left_out) - len(leaked)
                if shows_misses and (missed or leaked):
                    print(f"{extractor} {name}: missed {missed}, leaked {leaked}")
            ours, theirs = words(texts["web_fetch"]), words(texts["trafilatura"])
            shares.append((overlap(theirs, ours), overlap(ours, theirs), name))
    print(f"{len(pages)} pages, {wanted} texts to keep, {unwanted} to leave out")
    for extractor, (kept, left_out) in found.items():
        print(f"{extractor}: keeps {kept} ({kept / wanted:.1%}), leaves out {left_out} ({left_out / unwanted:.1%})")
    for at, (one, other) in enumerate([("trafilatura", "web_fetch"), ("web_fetch", "trafilatura")]):
        mean = sum(share[at] for share in shares) / len(shares)
        lowest = sorted((share[at], share[2]) for share in shares)[:3]
        lowest = ", ".join(f"{name} {share:.0%}" for share, name in lowest)
        print(f"of the words of {one}, {other} has {mean:.1%} per page; lowest: {lowest}")


main()
