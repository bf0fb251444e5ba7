//! The symbols of a file of each language, with expected definitions and references.

#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::fmt::Write as _;
use std::path::Path;

use tool_std_code::{
    ExtractError, FileSymbols, SourceLanguage, StructureQuery, SymbolExtractor, SymbolPattern,
};

fn fixture(name: &str) -> (SourceLanguage, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    (SourceLanguage::of_path(&path).unwrap(), std::fs::read_to_string(path).unwrap())
}

fn symbols(name: &str) -> FileSymbols {
    let (language, text) = fixture(name);
    let symbols = SymbolExtractor::new().extract_symbols(language, &text, &|| false).unwrap();
    assert!(!symbols.has_errors, "{name}");
    symbols
}

/// The definitions, one a line: line, kind and qualified name.
fn definitions(name: &str) -> String {
    symbols(name).definitions.iter().fold(String::new(), |mut all, it| {
        writeln!(all, "{} {} {}", it.line, it.kind, it.qualified_name()).unwrap();
        all
    })
}

/// The lines and roles of the references to `symbol`.
fn references(name: &str, symbol: &str) -> String {
    let symbols = symbols(name);
    let all = symbols.references_to(symbol).map(|it| format!("{} {}", it.line, it.role.name()));
    all.collect::<Vec<_>>().join(", ")
}

// F160: the definitions of each language.
#[test]
fn finds_the_definitions_of_rust() {
    let expected = "\
3 constant MAX_SIDES
4 variable COUNT
6 trait Shape
7 type Shape::Unit
8 method Shape::area
9 method Shape::scale
14 struct Circle
15 field Circle::radius
18 enum Kind
19 variant Kind::Round
20 variant Kind::Cornered
23 type Shapes
26 method Circle::new
33 type Circle::Unit
34 method Circle::area
40 method Holder::fmt
45 struct Holder
47 module checks
48 function checks::check_radius
54 macro square
";
    assert_eq!(definitions("shapes.rs"), expected);
    assert_eq!(references("shapes.rs", "check_radius"), "27 call, 52 other");
    assert_eq!(references("shapes.rs", "square"), "35 call, 59 other");
    assert_eq!(references("shapes.rs", "Circle"), "23 type, 25 type, 28 type, 32 type");
    assert_eq!(references("shapes.rs", "area"), "10 call");
}

#[test]
fn finds_the_definitions_of_python() {
    let expected = "\
3 variable MAX_SIDES
4 variable first
4 variable second
7 class Shape
10 field Shape.sides
11 field Shape.name
13 method Shape.area
17 method Shape.scale
21 class Circle
22 method Circle.__init__
26 method Circle.area
27 function Circle.area.square
33 function load
38 function check_radius
";
    assert_eq!(definitions("shapes.py"), expected);
    assert_eq!(references("shapes.py", "check_radius"), "23 call");
    assert_eq!(references("shapes.py", "Circle"), "33 type, 34 call");
    assert_eq!(references("shapes.py", "Shape"), "21 type, 34 other");
    assert_eq!(references("shapes.py", "cached"), "37 call");
}

// F160: quoted types refer as others do; words of a sentence and values do not.
#[test]
fn finds_the_names_in_quoted_types_of_python() {
    let text = "def f(a: \"Frame\", b: t.Optional[\"Frame\"], c: 'dict[str, Frame]',
      d: t.Literal[\"Frame\"], e: Annotated[int, \"Frame of reference\"]) -> \"list[Frame]\":
    return {\"Frame\": \"Frame\"}
";
    let symbols =
        SymbolExtractor::new().extract_symbols(SourceLanguage::Python, text, &|| false).unwrap();
    let found = symbols.references_to("Frame").map(|it| (it.line, it.column, it.role.name()));
    let found: Vec<_> = found.collect();
    assert_eq!(found, [(1, 10, "type"), (1, 33, "type"), (1, 56, "type"), (2, 79, "type")]);
}

#[test]
fn finds_the_definitions_of_javascript() {
    let expected = "\
3 constant MAX_SIDES
4 variable count
6 class Shape
7 field Shape.sides
8 field Shape.#secret
9 method Shape.constructor
12 method Shape.area
15 method Shape.handler
18 class Circle
19 method Circle.size
24 function square
26 function walk
30 function load
34 constant table
35 method table.draw
36 method table.erase
";
    assert_eq!(definitions("shapes.js"), expected);
    assert_eq!(references("shapes.js", "Shape"), "18 type");
    assert_eq!(references("shapes.js", "square"), "20 call");
    assert_eq!(references("shapes.js", "Circle"), "31 call");
    assert_eq!(references("shapes.js", "area"), "15 call, 27 call");
    assert_eq!(references("shapes.js", "#secret"), "13 other");
}

#[test]
fn finds_the_definitions_of_typescript() {
    let expected = "\
3 constant MAX_SIDES
5 interface Shape
6 field Shape.name
7 method Shape.area
10 type Shapes
12 enum Kind
13 variant Kind.Round
14 variant Kind.Cornered
17 class Base
18 field Base.count
19 field Base.name
20 method Base.area
21 method Base.scale
26 class Circle
27 method Circle.area
32 module Geometry
33 constant Geometry.origin
36 function convert
38 function square
40 function load
";
    assert_eq!(definitions("shapes.ts"), expected);
    assert_eq!(references("shapes.ts", "Circle"), "10 type, 40 type, 41 call");
    assert_eq!(references("shapes.ts", "Unit"), "1 other, 21 type, 36 type");
    assert_eq!(references("shapes.ts", "convert"), "22 call");
    assert_eq!(definitions("shapes.tsx"), "1 function Label\n5 function Page\n");
    assert_eq!(references("shapes.tsx", "Label"), "5 call");
}

#[test]
fn finds_the_definitions_of_go() {
    let expected = "\
5 constant MaxSides
7 variable count
7 variable total
10 variable first
11 variable second
14 interface Shape
15 method Shape.Area
18 struct Circle
19 field Circle.Radius
20 field Circle.x
20 field Circle.y
23 type Shapes
24 type Alias
26 function NewCircle
31 method Circle.Area
35 method Shapes.Total
40 method List.Push
42 struct List
42 field List.items
44 function checkRadius
";
    assert_eq!(definitions("shapes.go"), expected);
    assert_eq!(references("shapes.go", "checkRadius"), "27 call");
    assert_eq!(references("shapes.go", "Area"), "36 call");
    assert_eq!(references("shapes.go", "Shapes"), "35 type");
}

#[test]
fn finds_the_definitions_of_java() {
    let expected = "\
5 interface Shape
6 constant Shape.PI
7 method Shape.area
10 interface Checked
11 method Checked.value
14 enum Kind
15 variant Kind.ROUND
15 variant Kind.CORNERED
16 field Kind.sides
17 method Kind.Kind
20 class Point
23 class Shapes
24 field Shapes.MAX_SIDES
24 field Shapes.MIN_SIDES
26 method Shapes.Shapes
32 method Shapes.area
36 class Shapes.Circle
37 field Shapes.Circle.radius
39 method Shapes.Circle.Circle
42 method Shapes.check
";
    assert_eq!(definitions("Shapes.java"), expected);
    assert_eq!(references("Shapes.java", "check"), "28 call");
    assert_eq!(references("Shapes.java", "Circle"), "33 call");
    assert_eq!(references("Shapes.java", "helper"), "43 call");
    assert_eq!(references("Shapes.java", "Checked"), "22 type");
    assert_eq!(references("Shapes.java", "Unit"), "3 other, 26 type, 42 type");
}

#[test]
fn finds_the_definitions_of_c() {
    let expected = "\
3 macro MAX_SIDES
4 macro SQUARE
6 struct circle
7 field circle.radius
8 field circle.sides
9 field circle.draw
10 type Circle
12 struct value
13 field value.number
16 enum kind
16 variant kind.ROUND
16 variant kind.CORNERED
18 type callback
19 type Id
21 variable count
22 variable names
27 function area
32 function new_circle
";
    assert_eq!(definitions("shapes.c"), expected);
    assert_eq!(references("shapes.c", "area"), "25 other");
    assert_eq!(references("shapes.c", "SQUARE"), "29 call");
    assert_eq!(references("shapes.c", "draw"), "35 call");
    assert_eq!(references("shapes.c", "circle"), "34 type");
}

#[test]
fn finds_the_definitions_of_bash() {
    let expected = "\
4 variable MAX_SIDES
5 variable NAME
7 function area
12 function load
";
    assert_eq!(definitions("shapes.sh"), expected);
    assert_eq!(references("shapes.sh", "area"), "13 call");
    assert_eq!(references("shapes.sh", "NAME"), "13 other");
    assert_eq!(references("shapes.sh", "load"), "16 call");
}

#[test]
fn a_signature_ends_before_the_body() {
    let symbols = symbols("shapes.rs");
    let of = |name: &str| {
        let pattern = SymbolPattern::new(name);
        let found = symbols.definitions.iter().find(|it| pattern.is_name_of(it)).unwrap();
        (found.signature.to_string(), found.first_line, found.last_line)
    };
    let new = "pub fn new(radius: f64) -> Self".to_owned();
    assert_eq!(of("Circle::new"), (new, 26, 29));
    assert_eq!(of("Shape"), ("pub trait Shape".to_owned(), 6, 12));
    assert_eq!(of("MAX_SIDES"), ("pub const MAX_SIDES: u32 = 12".to_owned(), 3, 3));
    let around = symbols.enclosing_definition(28).unwrap();
    assert_eq!(around.qualified_name(), "Circle::new");
    assert_eq!(symbols.enclosing_definition(1), None);
}

// F160: a structure query finds syntax, and mistakes in the query have a place.
#[test]
fn structure_queries_find_syntax() {
    let (language, text) = fixture("shapes.py");
    let query = "(class_definition name: (identifier) @class superclasses: (argument_list (identifier) @base))";
    let query = StructureQuery::parse(language, query).unwrap();
    let mut extractor = SymbolExtractor::new();
    let found = extractor.find_structure(&query, &text, 10, &|| false).unwrap();
    let captures: Vec<_> =
        found.matches[0].captures.iter().map(|it| (&*it.capture, &*it.text)).collect();
    assert!(!found.is_truncated);
    assert_eq!((found.matches.len(), captures), (1, vec![("class", "Circle"), ("base", "Shape")]));

    let call = StructureQuery::parse(language, "(call) @call").unwrap();
    let limited = extractor.find_structure(&call, &text, 2, &|| false).unwrap();
    assert_eq!((limited.matches.len(), limited.is_truncated), (2, true));

    let cases = [
        (
            "(nothing_like_it) @x",
            "line 1, column 2: Python's grammar has no node `nothing_like_it`",
        ),
        ("(call what: (_)) @x", "line 1, column 7: Python's grammar has no field `what`"),
        ("(call)", "the query captures nothing; write `@name` behind the node to show"),
    ];
    for (query, expected) in cases {
        let error = StructureQuery::parse(language, query).unwrap_err().to_string();
        assert_eq!(error, expected);
    }
    let error = StructureQuery::parse(language, "(call").unwrap_err().to_string();
    assert!(error.starts_with("line 1, column "), "{error}");
}

#[test]
fn a_text_with_errors_has_the_symbols_around_them() {
    let text = "fn first() {}\n\nfn broken( {{{\n\nfn last() {}\n";
    let found =
        SymbolExtractor::new().extract_symbols(SourceLanguage::Rust, text, &|| false).unwrap();
    assert!(found.has_errors);
    assert_eq!(&*found.definitions[0].name, "first");
}

#[test]
fn odd_texts_have_no_symbols_and_do_not_fail() {
    let nested = "(".repeat(500);
    let mut extractor = SymbolExtractor::new();
    for language in SourceLanguage::ALL {
        for text in ["", "\0", "\u{feff}", "\r\n\r\n", "ä", nested.as_str()] {
            let found = extractor.extract_symbols(language, text, &|| false).unwrap();
            assert_eq!(found.definitions, [], "{} {text:.5}", language.name());
        }
    }
}

#[test]
fn a_cancelled_extraction_has_no_symbols() {
    let text = "fn f() { g(); }\n".repeat(10_000);
    let mut extractor = SymbolExtractor::new();
    let error = extractor.extract_symbols(SourceLanguage::Rust, &text, &|| true).unwrap_err();
    assert_eq!(error, ExtractError::Cancelled);
    // The extractor works on.
    let found = extractor.extract_symbols(SourceLanguage::Rust, "fn f() {}", &|| false).unwrap();
    assert_eq!(found.definitions.len(), 1);
}

// F160: the map has what is referred to most first, and stays within its budget.
#[test]
fn the_map_of_a_repository_stays_within_its_budget() {
    use std::sync::Arc;
    use tool_std_code::{MappedFile, RepoMap};

    let mut extractor = SymbolExtractor::new();
    let mut file = |path: String, text: &str| MappedFile {
        path,
        symbols: Arc::new(
            extractor.extract_symbols(SourceLanguage::Rust, text, &|| false).unwrap(),
        ),
    };
    let mut files = vec![
        file("core.rs".into(), "pub fn load_everything() {}\npub fn rarely() {}\n"),
        file("other.rs".into(), "pub struct Settings;\nimpl Settings { fn apply(&self) {} }\n"),
    ];
    for number in 0..20 {
        let text = format!("fn user_{number}() {{ load_everything(); }}\n");
        files.push(file(format!("user_{number:02}.rs"), &text));
    }
    let map = RepoMap::new(files.clone(), &[]);
    let mut last = 0;
    for budget in [0, 5, 10, 20, 50, 100, 1000] {
        let text = map.text(budget);
        assert!(text.text.len() <= budget * 4, "{budget}: {}", text.text);
        assert!(text.definitions >= last);
        last = text.definitions;
    }
    assert_eq!(last, map.definition_count());
    assert!(map.text(20).text.starts_with("core.rs:\n  1: pub fn load_everything()\n"));
    let reversed: Vec<_> = files.iter().rev().cloned().collect();
    assert_eq!(RepoMap::new(reversed, &[]).text(100), map.text(100));

    let focused = RepoMap::new(files, &["other".to_owned()]);
    let text = focused.text(1000).text;
    let at = |what: &str| text.find(what).unwrap();
    assert!(at("other.rs:") < at("user_00.rs:"), "{text}");
    assert!(text.contains("  Settings:\n    2: fn apply(&self)\n"), "{text}");
}
