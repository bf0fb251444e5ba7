//! The errors of invalid tools.

use super::*;

#[test]
fn what_is_no_function_stays() {
    check(
        quote!(),
        quote!(
            struct NoTool;
        ),
        expect![[r#"
        ::core::compile_error! {
            "`#[tool]` must be on a function\nhelp: put it on an `async fn`"
        }
        struct NoTool;
    "#]],
    );
}

#[test]
fn unknown_and_repeated_items() {
    check_attribute("raed", &["unknown item `raed` in `#[tool]`"]);
    check_attribute("read, read", &["duplicate `read`"]);
    check_attribute("display(shw(path))", &["unknown item `shw` in `display`"]);
    check_attribute("approval(needed = f)", &["unknown item `needed` in `approval`"]);
    check_attribute(
        "timeout = , raed",
        &["`timeout` has no value", "unknown item `raed` in `#[tool]`"],
    );
    check_attribute(
        "example = { 1: 2 }, raed",
        &[
            "value of `example` must be an expression: unexpected token, expected `;`",
            "unknown item `raed` in `#[tool]`",
        ],
    );
    check_attribute("\"read\"", &["expected the name of an item"]);
    check_attribute("read write", &["expected `,`"]);
    // One `=` is missing.
    check_attribute("timeout \"5s\", raed", &["expected `,`", "unknown item `raed` in `#[tool]`"]);
}

#[test]
fn items_have_one_shape() {
    check_attribute("read = true", &["`read` must stand alone"]);
    check_attribute("timeout", &["`timeout` must have a value"]);
    check_attribute("aliases = \"a\"", &["`aliases` must have a list"]);
    check_attribute("aliases()", &["`aliases` has no values"]);
    check_attribute("aliases(a)", &["`aliases` must hold string literals"]);
    check_attribute("title = TITLE", &["`title` must be a string literal"]);
    check_attribute("register = maybe", &["`register` must be `true` or `false`"]);
    check_attribute("crate = 1", &["`crate` must be the path of the runtime crate"]);
}

#[test]
fn contradictions() {
    check_attribute("read, write", &["`write` contradicts `read`"]);
    check_attribute("read, destructive", &["`destructive` contradicts `read`"]);
    check_attribute("destructive", &[]);
}

#[test]
fn names() {
    const RULE: &str = "must be 1 to 64 of A-Z a-z 0-9 _ -, starting with a letter or _";
    check_attribute("name = \"a b\"", &[&format!("name `a b` {RULE}")]);
    check_attribute("aliases(\"1\")", &[&format!("name `1` {RULE}")]);
    check_attribute(
        "aliases(\"Act\", \"b\", \"B\")",
        &[
            "duplicate `Act`, which is the name of the tool; case does not count",
            "duplicate `B`, which is another alias; case does not count",
        ],
    );
    assert_eq!(complaints("", "/** D. */ fn größe() {}"), [format!("name `größe` {RULE}")]);
}

#[test]
fn values_of_items() {
    for time in ["10", "1.5s", "1m30s", "10sec"] {
        let attribute = format!("timeout = \"{time}\"");
        check_attribute(&attribute, &["`timeout` must be a whole number and its unit"]);
    }
    check_attribute("timeout = \"0s\"", &["`0s` must be above zero"]);
    check_attribute("max_output = \"big\"", &["`max_output` must be a size in bytes"]);
    check_attribute("truncate = up", &["expected `head`, `tail`, `middle` or `none`"]);
    check_attribute("parallel = any", &["expected `shared`, `exclusive` or `by(parameter)`"]);
    check_attribute("description = \" \"", &["`description` must not be empty"]);
    check_attribute("title = \"\"", &["`title` must not be empty"]);
    check_attribute("title = \"a\\nb\"", &["`title` must be one line of text"]);
    check_attribute("category = \" \"", &["`category` must not be empty"]);
    check_attribute(
        "scopes(\"a\", \"a\", \"\")",
        &["duplicate scope `a`", "scope must not be empty"],
    );
}

/// What rules speak of is a name; a pattern would be one of rules, and grant more than the tool.
#[test]
fn permissions_are_names() {
    const RULE: &str =
        "`permission` must be 1 to 64 of A-Z a-z 0-9 _ -, starting with a letter or _";
    for permission in ["", "*", "edit(*)", "a b"] {
        check_attribute(&format!("permission = \"{permission}\""), &[RULE]);
    }
    check_attribute("permission = \"edit\"", &[]);
}

#[test]
fn hooks_are_functions() {
    check_attribute("approval(required = true)", &["`required` must be a function"]);
    check_attribute("approval(suggest = \"always\")", &["`suggest` must be a function"]);
    check_attribute("display(preview = 1)", &["`preview` must be a function"]);
}

/// The second lines of all complaints.
fn helps(attribute: &str, item: &str) -> Vec<String> {
    let function: ToolFunction = syn::parse_str(item).unwrap();
    let mut diag = Diagnostics::default();
    let items = attr::parse_items(attribute.parse().unwrap(), &mut diag);
    lower::lower_tool(&items, &function, &ToolSite::Free, &mut diag);
    let help = |message: String| message.lines().nth(1).unwrap_or_default().to_owned();
    diag.messages().into_iter().map(help).collect()
}

#[test]
fn help_is_what_can_be_done() {
    let check = |attribute: &str, help: &str| {
        let item = "/** D. */ fn act(/** A path. */ path: String) {}";
        assert_eq!(helps(attribute, item), [format!("help: {help}")], "{attribute}");
    };
    check("destructive = true", "write `destructive`");
    check("read, destructive = false", "remove it");
    check("parallel = path", "write `parallel = by(path)`");
    check("parallel = by", "name one parameter, as in `parallel = by(path)`");
    check("parallel = by(path, path)", "name one parameter, as in `parallel = by(path)`");
    check("parallel = any", "write `parallel = shared`");
    let check = |arg: &str, help: &str| {
        let item = format!("/** D. */ fn act(/** A. */ #[arg({arg})] a: u8) {{}}");
        assert_eq!(helps("", &item), [format!("help: {help}")], "{arg}");
    };
    check("range = 5..5", "write `5..=5` for that number alone");
    check("range = 5..4", "write the smaller number first");
    check("length = 0..0", "write a greater number, or `..=0`");
    check("range = 0..=256", "stay within `0..=255`, or take another type");
}

#[test]
fn what_is_shown_must_be_sent_and_not_secret() {
    check_attribute("display(primary = paht)", &["unknown parameter `paht` in `primary`"]);
    check_attribute(
        "display(show(path, path, cx))",
        &["duplicate `path` in `show`", "`cx` in `show` must be a parameter that the model sends"],
    );
    check_attribute(
        "display(summary = \"{token} {paht:>5}\")",
        &[
            "sensitive parameter `token` must not be in `summary`",
            "unknown parameter `paht` in `summary`",
        ],
    );
    check_attribute("display(ui = \"https://a.b\")", &["`ui` must be the URI of a page"]);
    check_attribute("display(summary = \"{}\")", &["`summary` must name a parameter in `{}`"]);
    check_attribute("parallel = by(nothing)", &["unknown parameter `nothing` in `parallel`"]);
    check_attribute("display(primary = \"path\")", &["`primary` must be the name of a parameter"]);
}

#[test]
fn examples_fit_the_parameters() {
    check_attribute("example = r#\"{\"path\": \"a\"}\"#", &[]);
    check_attribute("example = \"[]\"", &["`example` must be a JSON object"]);
    check_attribute("example = \"{}\"", &["`example` has no `path`, which is required"]);
    check_attribute("example = r#\"{\"paht\": 1}\"#", &["unknown argument `paht` in `example`"]);
    check_attribute(
        "example = r#\"{\"path\": \"a\", \"path\": \"b\"}\"#",
        &["duplicate `path` in `example`"],
    );
}

#[test]
fn examples_keep_to_the_constraints() {
    let check = |param: &str, value: &str, expected: &[&str]| {
        let attribute = format!("example = r#\"{{\"p\": {value}}}\"#");
        let item = format!("/** D. */ fn act(/** P. */ #[arg({param}) {{}}");
        let complaints = complaints(&attribute, &item);
        assert_eq!(complaints, expected, "{param} {value}");
    };
    check("range = 1..=5)] p: u32", "5", &[]);
    check("range = 1..=5)] p: u32", "99", &["`p` in `example` must be in its range"]);
    check("range = 0.5..=1.0)] p: f64", "0", &["`p` in `example` must be in its range"]);
    check("range = 1..=MAX)] p: u32", "99", &[]);
    check(
        "length = 1..)] p: String",
        "\"\"",
        &["`p` in `example` must have the length that it requires"],
    );
    check(
        "length = ..=1)] p: Vec<u8>",
        "[1, 2]",
        &["`p` in `example` must have the length that it requires"],
    );
    check("choices(\"a\"))] p: String", "\"b\"", &["`p` in `example` must be one of its choices"]);
    check("pattern = \"^a$\")] p: String", "\"b\"", &["`p` in `example` must match its pattern"]);
    check("default = 1, hidden)] p: u8", "1", &["unknown argument `p` in `example`"]);
}

#[test]
fn signatures() {
    let check = |item: &str, expected: &[&str]| {
        assert_eq!(complaints("", &format!("/** D. */ {item}")), expected, "{item}");
    };
    check("unsafe fn f() {}", &["tool must not be unsafe"]);
    check("extern \"C\" fn f() {}", &["tool must not be `extern`"]);
    check("fn f<T>() {}", &["tool must not be generic"]);
    check("fn f<'a>() {}", &["tool must not be generic"]);
    check("fn f(&self) {}", &["tool must not take `self`"]);
    check("fn f() -> impl Sized {}", &["result of a tool must not be `impl Trait`"]);
    check("fn f() -> impl Future<Output = String> {}", &["result of a tool must not be a future"]);
    check(
        "fn f() -> Pin<Box<dyn Future<Output = ()>>> {}",
        &["result of a tool must not be a future"],
    );
    check("#[tool] fn f() {}", &["duplicate `#[tool]`"]);
    check("fn f();", &["tool `f` has no body"]);
    assert_eq!(complaints("", "fn f() {}"), ["tool `f` has no description"]);
}

#[test]
fn forms_of_parameters() {
    check_param("x: u8", &["parameter `x` has no description"]);
    check_param(
        "#[arg(hidden)] x: u8",
        &["hidden parameter `x` has no default", "parameter `x` has no description"],
    );
    check_param("/** X. */ (a, b): (u8, u8)", &["parameter must be a plain name"]);
    check_param("/** X. */ x: &mut u8", &["type of parameter `x` must not be `&mut`"]);
    check_param("/** X. */ x: impl Sized", &["type of parameter `x` must not be `impl Trait`"]);
    check_param("/** X. */ x: &'static str", &["type of parameter `x` must not have a lifetime"]);
    check_param("/** X. */ #[cfg(unix)] x: u8", &["parameter `x` must not be conditional"]);
    check_param(
        "/** X. */ #[args(default = 1)] x: u8",
        &["unknown attribute `args` of parameter `x`"],
    );
    check_param(
        "/** X. */ #[default = 5] x: u8",
        &["unknown attribute `default` of parameter `x`"],
    );
    // What was never meant to be sent needs no description.
    for (ty, what) in [
        ("Option<State<u8>>", "must not be an `Option` of this"),
        ("Option<Args<T>>", "must not be an `Option` of this"),
        ("&State<u8>", "must not be a reference"),
        ("Option<&Context>", "must not borrow"),
        ("RawArgs<'_>", "must not borrow"),
    ] {
        check_param(&format!("x: {ty}"), &[&format!("type of parameter `x` {what}")]);
    }
    check_param(
        "#[arg(hidden)] cx: &Context",
        &["`#[arg]` must not be on `cx`, which the model does not send"],
    );
    check_param(
        "args: Args<T>, /** X. */ x: u8",
        &["`Args` must be the only parameter that the model sends"],
    );
    check_param(
        "/** X. */ x: u8, args: Args<T>",
        &["`Args` must be the only parameter that the model sends"],
    );
}

#[test]
fn names_of_arguments() {
    check_param(
        "/** X. */ #[arg(rename = \"a b\")] x: u8",
        &["argument `a b` must be named with 1 to 64 of A-Z a-z 0-9 _ - ."],
    );
    check_param(
        "/** X. */ #[arg(alias(\"y\"))] x: u8, /** Y. */ y: u8",
        &["duplicate argument `y`"],
    );
    check_param("/** X. */ #[arg(alias(\"y\"), alias(\"y\"))] x: u8", &["duplicate argument `y`"]);
}

#[test]
fn constraints() {
    let check = |arg: &str, ty: &str, expected: &[&str]| {
        check_param(&format!("/** X. */ #[arg({arg})] x: {ty}"), expected);
    };
    check("range = 5", "u8", &["`range` must have bounds"]);
    check("range = ..", "u8", &["`range` must have bounds"]);
    check("range = 5..=1", "u8", &["`range` must not be empty"]);
    check("range = 1..1", "u8", &["`range` must not be empty"]);
    check("range = 0.0..1.0", "f64", &["`range` of floats must include its end"]);
    check("range = 0.5..=1.0", "Option<u8>", &["`range` of whole numbers must have whole bounds"]);
    check("range = 1..=f(2)", "u8", &["bound of `range` must be a number or a constant"]);
    check("range = -5..=MAX", "i8", &[]);
    check("length = 5..=1", "String", &["`length` must not be empty"]);
    check("length = -1..", "String", &["bound of `length` must be a whole number from 0"]);
    check("pattern = \"(\"", "String", &["`pattern` must be a regular expression: unclosed group"]);
    check("choices(\"a\", \"a\")", "String", &["duplicate choice `a`"]);
    check("choices(\"a\"), pattern = \"^b$\"", "String", &["choice `a` must match its pattern"]);
    check(
        "choices(\"a\"), length = 2..",
        "String",
        &["choice `a` must have the length that it requires"],
    );
    check(
        "sensitive, default = \"x\"",
        "String",
        &["sensitive parameter `x` has a default, which everybody is told"],
    );
    check("sensitive, hidden, default = \"x\"", "String", &[]);
    let of = |ty: &str| format!("bound of `range` must be a number of type `{ty}`");
    check("range = 300..=400", "Option<u8>", &[&of("u8"), &of("u8")]);
    check("range = -9..=-1", "u32", &[&of("u32"), &of("u32")]);
    check("range = 0..256", "u8", &[]);
    check("range = 0..=256", "u8", &[&of("u8")]);
    check("range = -1..", "usize", &[&of("usize")]);
    check("range = 0..=300", "Weekday", &[]);
    check("defualt = 1", "u8", &["unknown item `defualt` in `#[arg]`"]);
}

#[test]
fn defaults_keep_to_the_constraints() {
    let check = |arg: &str, ty: &str, expected: &[&str]| {
        check_param(&format!("/** X. */ #[arg({arg})] x: {ty}"), expected);
    };
    check("default = 0, range = 1..", "u8", &["default 0 must be in its range"]);
    check("default = -1, range = 0..=9", "i8", &["default -1 must be in its range"]);
    check("default = 1.5, range = 0.0..=1.0", "f64", &["default 1.5 must be in its range"]);
    check("default = Some(9), range = ..9", "Option<u8>", &["default 9 must be in its range"]);
    check(
        "default = \"A\", pattern = \"^[a-z]\"",
        "String",
        &["default \"A\" must match its pattern"],
    );
    check(
        "default = \"c\", choices(\"a\", \"b\")",
        "&str",
        &["default \"c\" must be one of its choices"],
    );
    check(
        "default = \"\", length = 1..",
        "String",
        &["default \"\" must have the length that it requires"],
    );
    check("default = LIMIT, range = 1..=MAX", "u8", &[]);
}
