//! Properties that hold for generated scripts.

use proptest::prelude::*;
use tool_std::shell::{analyze_argv, analyze_script};

use crate::support::{Rules, Verdict};

/// Words of plain commands: what is common, and what needs quotes.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,6}",
        "-{1,2}[a-z]{1,5}",
        "[a-z ;&|$`'\"(){}<>*?!#~\\\\=\\n]{0,6}",
        "[äß語😀a]{1,3}",
    ]
}

/// A program and arguments; the program is a plain name that stands for nothing else.
fn argv() -> impl Strategy<Value = Vec<String>> {
    ("t[a-l][a-z]x", prop::collection::vec(word(), 0..4))
        .prop_map(|(program, rest)| std::iter::once(program).chain(rest).collect())
}

/// One of the ways to write a word so that it means itself.
fn written(word: &str, style: u8) -> String {
    let single = || format!("'{}'", word.replace('\'', r"'\''"));
    let is_plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    match style % 4 {
        0 if is_plain => word.to_owned(),
        1 if !word.contains(['$', '`', '"', '\\']) => format!("\"{word}\""),
        2 if !word.is_empty() && !word.contains('\n') => {
            word.chars().flat_map(|c| ['\\', c]).collect()
        }
        3 if word.len() > 1 && is_plain => format!("{}'{}'", &word[..1], &word[1..]),
        _ => single(),
    }
}

fn script(commands: &[(Vec<String>, u8, u8)]) -> String {
    let mut script = String::new();
    for (at, (argv, style, separator)) in commands.iter().enumerate() {
        if at > 0 {
            script.push_str([" ; ", "&&", " || ", "|", "\n"][usize::from(*separator) % 5]);
        }
        for (at, word) in argv.iter().enumerate() {
            if at > 0 {
                script.push_str([" ", "  ", "\t"][usize::from(*separator) % 3]);
            }
            script.push_str(&written(word, style.wrapping_add(at as u8)));
        }
    }
    script
}

fn commands() -> impl Strategy<Value = Vec<(Vec<String>, u8, u8)>> {
    prop::collection::vec((argv(), any::<u8>(), any::<u8>()), 1..5)
}

/// Forms that run a command somewhere in a script.
const HIDING: &[&str] = &[
    "{}; @",
    "@ && {}",
    "@ | {}",
    "@\n{}",
    "echo $({})\n@",
    "echo \"$({})\"; @",
    "({})\n@",
    "if @; then {}; fi",
    "for i in a; do {}; done; @",
    "@ & {}",
    "echo `{}`; @",
    "sudo {}; @",
    "bash -c '{}'; @",
    "timeout 5 {}; @",
    "cat <(@) <({})",
    "f() { {}; }; @",
    "@ || env A=1 {}",
    "cat <<EOF\n$({})\nEOF\n@",
    "A=1 {}; @",
    "@ ; xargs {}",
    "eval '{}' ; @",
];

const DENY: &[&str] = &["evil *"];

proptest! {
    // (a)
    #[test]
    fn spelling_does_not_change_plain_commands(commands in commands()) {
        let text = script(&commands);
        let analysis = analyze_script(&text);
        prop_assert!(analysis.is_plain, "{text:?}: {:?}", analysis.opaque);
        prop_assert_eq!(analysis.commands.len(), commands.len());
        for (command, (argv, _, _)) in analysis.commands.iter().zip(&commands) {
            prop_assert_eq!(&command.argv, argv);
            let alone = analyze_argv(argv);
            prop_assert_eq!(command, &alone.commands[0]);
            // The text that rules see says the same once more.
            prop_assert_eq!(&analyze_script(&command.text).commands[0], command);
        }
    }

    // (b)
    #[test]
    fn nested_commands_are_always_found(
        commands in commands(),
        form in prop::sample::select(HIDING),
    ) {
        let rules = Rules::new(&["*"], DENY);
        let text = form.replace('@', &script(&commands)).replace("{}", "evil now");
        prop_assert_eq!(rules.script(&text), Verdict::Deny, "{}", text);
        let none = Rules::new(&["t*"], &[]);
        prop_assert!(none.script(&text) != Verdict::Allow, "{}", text);
    }

    // (b), for opaque scripts
    #[test]
    fn after_a_line_end_it_is_found(text in "[a-z $`'\"(){}<>|&;\\\\\\n]{0,40}") {
        let text = format!("{text}a\nevil now\n");
        let rules = Rules::new(&["*"], DENY);
        prop_assert_eq!(rules.script(&text), Verdict::Deny, "{}", text);
    }

    // (c)
    #[test]
    fn a_rule_that_allows_never_tightens_and_one_that_forbids_never_lifts(
        text in "[a-c $;&|\\n'\"]{0,30}",
        allow in "[a-c* ]{1,4}",
        deny in "[a-c* ]{1,4}",
    ) {
        let verdict = |allow: &[&str], deny: &[&str]| Rules::new(allow, deny).script(&text);
        prop_assert!(verdict(&["a *", &allow], &["b *"]) <= verdict(&["a *"], &["b *"]));
        prop_assert!(verdict(&["a *"], &["b *", &deny]) >= verdict(&["a *"], &["b *"]));
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let analysis = analyze_script(&text);
        prop_assert!(analysis.opaque.is_some() || !analysis.commands.is_empty());
    }
}
