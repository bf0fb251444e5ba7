"""Compares references by name with those of pyright, for each definition of a package.

A reference is a place: file, line and column. Places of definitions count for neither side. Two
comparisons are printed: per name, where pyright's references of all definitions of one name are taken
together, and per symbol, where those of each definition are compared with all uses of its name.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys


class LanguageServer:
    """Sends requests to a language server over its standard input and output."""

    def __init__(self, command, root):
        self.process = subprocess.Popen([command, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last_id = 0
        self.has_files = False
        folder = {"uri": root.as_uri(), "name": root.name}
        # Without a process id: the server ends when its standard input is closed.
        self.request("initialize", {
            "processId": None, "rootUri": root.as_uri(), "workspaceFolders": [folder],
            "capabilities": {"workspace": {"configuration": True, "workspaceFolders": True}},
        })
        self.notify("initialized", {})
        while not self.has_files:
            self.handle(self.read())

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def read(self):
        length = 0
        while line := self.process.stdout.readline().strip():
            name, value = line.split(b":", 1)
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise SystemExit("the language server has ended")
        return json.loads(self.process.stdout.read(length))

    def handle(self, message):
        """Answers requests of the server, and notes that it has found the files."""
        text = message.get("params", {})
        text = text.get("message", "") if isinstance(text, dict) else ""
        if re.search(r"Found \d+ source file", text):
            self.has_files = True
        if "id" in message and "method" in message:
            items = message["params"].get("items", []) if message["method"] == "workspace/configuration" else None
            self.send({"id": message["id"], "result": None if items is None else [{} for _ in items]})

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def request(self, method, params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self.last_id and "method" not in message:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            self.handle(message)

    def close(self):
        self.request("shutdown", None)
        self.notify("exit", None)
        self.process.wait(timeout=30)


class Sources:
    """The lines of the files, for the conversion of columns."""

    def __init__(self):
        self.lines = {}

    def line(self, file, line):
        if file not in self.lines:
            self.lines[file] = pathlib.Path(file).read_text().split("\n")
        return self.lines[file][line - 1]

    def utf16_column(self, file, line, bytes_before):
        before = self.line(file, line).encode()[:bytes_before].decode()
        return len(before.encode("utf-16-le")) // 2


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"


def describe(pairs):
    """Returns precision and recall over pairs of found and true places."""
    right = sum(len(found & true) for found, true in pairs)
    found, true = sum(len(found) for found, _ in pairs), sum(len(true) for _, true in pairs)
    return f"{share(right, found)}, {share(right, true)}"


def compare(symbols_program, server_program, root, package, shows):
    (root / "pyrightconfig.json").write_text(json.dumps({
        "include": [package], "pythonVersion": "3.12", "typeCheckingMode": "off",
    }))
    printed = subprocess.run([symbols_program, str(root / package)], capture_output=True, text=True, check=True)
    entries = [json.loads(line) for line in printed.stdout.splitlines()]
    sources = Sources()
    ours, definitions = collections.defaultdict(set), collections.defaultdict(list)
    for it in entries:
        file, line, name = it["file"], it["line"], it["name"]
        if it["kind"] == "reference":
            ours[name].add((file, line, sources.utf16_column(file, line, it["column"])))
        else:
            found = re.search(rf"\b{re.escape(name)}\b", sources.line(file, line))
            column = sources.utf16_column(file, line, len(sources.line(file, line)[: found.start()].encode()))
            definitions[name].append((file, line, column))
    server = LanguageServer(server_program, root)
    opened, theirs = set(), {}
    for places in definitions.values():
        for file, line, column in places:
            document = {"uri": pathlib.Path(file).as_uri()}
            if file not in opened:
                opened.add(file)
                text = pathlib.Path(file).read_text()
                server.notify("textDocument/didOpen", {
                    "textDocument": {**document, "languageId": "python", "version": 1, "text": text},
                })
            found = server.request("textDocument/references", {
                "textDocument": document,
                "position": {"line": line - 1, "character": column},
                "context": {"includeDeclaration": False},
            })
            theirs[file, line, column] = {
                (it["uri"].removeprefix("file://"), it["range"]["start"]["line"] + 1, it["range"]["start"]["character"])
                for it in found or []
            }
    server.close()

    defined = {place for places in definitions.values() for place in places}
    by_name, by_symbol, unique = [], [], []
    for name, places in definitions.items():
        together = set().union(*(theirs[place] for place in places)) - defined
        pair = (ours[name] - defined, together)
        by_name.append(pair)
        by_symbol.extend((ours[name] - defined, theirs[place] - defined) for place in places)
        if len(places) == 1:
            unique.append(pair)
        if shows:
            for kind, left in (("wrong", pair[0] - pair[1]), ("missed", pair[1] - pair[0])):
                for file, line, column in sorted(left):
                    print(f"{kind} {name} {file}:{line}:{column}: {sources.line(file, line).strip()}")
    count = sum(len(places) for places in definitions.values())
    references = sum(len(true) for _, true in by_name)
    print(f"| {package} | {count} | {references} | {describe(by_name)} | {describe(unique)} | {describe(by_symbol)} |")


def main():
    symbols_program, server_program, root, *packages = sys.argv[1:]
    shows = "--show" in packages
    print("| package | definitions | references | per name: precision, recall | names defined once | per symbol |")
    print("|---|--:|--:|---|---|---|", flush=True)
    for package in packages:
        if package != "--show":
            compare(symbols_program, server_program, pathlib.Path(root).resolve(), package, shows)
            sys.stdout.flush()


main()
