//! Commands of a program whose subcommands call tools, such as `pages add` for the tool `page_add`.
//!
//! **Invariant:** such a command is `call` with other words: the same flags, rules, approvals and exit
//! codes.

use std::ffi::OsString;

use clap::{Arg, Command};
use tool_sdk_core::Toolset;

use super::exit::CommandError;
use super::{args, flag, style};

/// A subcommand that calls a tool: `(name, tool)`, or `(name, tool, what it does)`.
///
/// Without a text of its own, its help is that of the tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolSubcommand {
    name: &'static str,
    /// The tool, with flags behind its name.
    tool: &'static str,
    about: Option<&'static str>,
}

impl From<(&'static str, &'static str)> for ToolSubcommand {
    fn from((name, tool): (&'static str, &'static str)) -> Self {
        Self { name, tool, about: None }
    }
}

impl From<(&'static str, &'static str, &'static str)> for ToolSubcommand {
    fn from((name, tool, about): (&'static str, &'static str, &'static str)) -> Self {
        Self { name, tool, about: Some(about) }
    }
}

impl ToolSubcommand {
    /// Builds the clap command, which only serves help and completions.
    fn build_command(&self, toolset: &Toolset) -> Command {
        let command = Command::new(self.name);
        let (tool, fixed_flags, open_flag) = split_words(self.tool);
        let Some(tool) = toolset.get(tool) else { return args::with_globals(command) };
        let definition = tool.definition();
        let Some(about) = self.about else {
            return args::with_globals(command.about(first_sentence(&definition.description)));
        };
        let is_free = |flag: &flag::ParamFlag<'_>| {
            let option = format!("--{}=", flag.long());
            !fixed_flags.iter().any(|fixed| fixed.starts_with(&option))
        };
        let word = open_flag.map(|flag| {
            let name = flag.trim_start_matches('-').to_uppercase();
            Arg::new("word").value_name(name).help(format!("The value of `{flag}`"))
        });
        let flags = flag::tool_flags(definition);
        let free_flags = flags.iter().filter(|flag| is_free(flag)).map(flag::ParamFlag::to_arg);
        args::with_globals(command.about(about).args(word).args(free_flags))
    }
}

/// A command, and its subcommands, each of which calls a tool.
#[derive(Debug)]
pub(super) struct ToolCommands {
    name: &'static str,
    about: &'static str,
    subcommands: Vec<ToolSubcommand>,
}

impl ToolCommands {
    pub(super) fn new(
        name: &'static str,
        about: &'static str,
        subcommands: impl IntoIterator<Item = impl Into<ToolSubcommand>>,
    ) -> Self {
        Self { name, about, subcommands: subcommands.into_iter().map(Into::into).collect() }
    }

    /// Builds the clap command, which only serves help and completions.
    pub(super) fn build_command(&self, toolset: &Toolset) -> Command {
        args::with_globals(
            Command::new(self.name)
                .about(self.about)
                .arg_required_else_help(true)
                .subcommand_required(true)
                .subcommands(self.subcommands.iter().map(|known| known.build_command(toolset))),
        )
    }

    /// Rewrites `NAME SUBCOMMAND …`, which starts at the word `at`, to `call TOOL …`. A word behind it
    /// that is not an option is the main parameter of the tool. Help of a subcommand with a text of its own
    /// is that of its clap command.
    pub(super) fn rewrite_words(
        &self,
        words: &mut Vec<OsString>,
        at: usize,
        toolset: impl FnOnce() -> Toolset,
    ) {
        let is_help = words.get(at).is_some_and(|word| word == "help");
        let start = at + usize::from(is_help);
        let Some([name, subcommand]) = words.get(start..start + 2) else { return };
        let known = self.subcommands.iter().find(|known| subcommand == known.name);
        let Some(known) = known.filter(|_| name == self.name) else { return };
        let asks_help =
            is_help || words[start + 2..].iter().any(|word| word == "--help" || word == "-h");
        if asks_help && known.about.is_some() {
            return;
        }
        let (tool, flags, open_flag) = split_words(known.tool);
        let mut call: Vec<OsString> = vec!["call".into(), tool.into()];
        if is_help {
            call.push("--help".into());
        } else if words.get(start + 2).is_some_and(is_plain_word) && open_flag.is_some() {
            call.extend(flags.iter().chain(&open_flag).map(OsString::from));
        } else if words.get(start + 2).is_some_and(is_plain_word) {
            call.extend(flags.iter().map(OsString::from));
            let toolset = toolset();
            let tool = toolset.get(tool);
            let flag = tool.as_ref().and_then(|tool| {
                let definition = tool.definition();
                let primary = definition.display.primary.as_deref()?;
                flag::tool_flags(definition).into_iter().find(|flag| flag.name == primary)
            });
            call.extend(flag.map(|flag| format!("--{}", flag.long()).into()));
        } else {
            call.extend(flags.iter().map(OsString::from));
        }
        words.splice(at..start + 2, call);
    }

    /// Returns the error for words that were not rewritten.
    pub(super) fn usage_error(&self) -> CommandError {
        let name = self.name;
        CommandError::usage(format_args!("`{name}` needs its subcommand right behind it")).hint(
            format_args!("write options last, as in `{name} {} --json`", self.subcommands[0].name),
        )
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }
}

/// Splits the words of a subcommand: the tool, its flags, and the flag whose value is the next word.
fn split_words(words: &'static str) -> (&'static str, Vec<&'static str>, Option<&'static str>) {
    let mut all = words.split(' ');
    let tool = all.next().unwrap_or_default();
    let mut flags: Vec<_> = all.collect();
    let open_flag = flags.pop_if(|flag| !flag.contains('='));
    (tool, flags, open_flag)
}

/// Whether a word is neither an option nor arguments as JSON.
fn is_plain_word(word: &OsString) -> bool {
    let word = word.to_string_lossy();
    !word.starts_with(['-', '{', '@'])
}

fn first_sentence(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let end = paragraph.find(". ").unwrap_or(paragraph.len());
    let sentence = paragraph[..end].trim_end_matches('.');
    style::sanitize_text(sentence).into_owned()
}

#[cfg(test)]
mod tests {
    use crate::App;
    use crate::test_support::{TestCli, test_registry};

    fn run(words: &[&str]) -> (u8, String, String) {
        let app = App::new(test_registry()).with_tool_commands(
            "words",
            "Say words",
            [("say", "echo"), ("kinds", "kinds")],
        );
        let ran = TestCli::default().run_app(&app, words);
        (ran.code, ran.out, ran.err)
    }

    // F194: the commands of a program call its tools.
    #[test]
    fn a_subcommand_calls_its_tool() {
        for words in [
            &["words", "say", "--text", "hi"][..],
            &["--no-input", "words", "say", "--text", "hi"],
            &["words", "say", r#"{"text": "hi"}"#],
        ] {
            assert_eq!(run(words), (0, "hi\n".to_owned(), String::new()), "{words:?}");
        }
        let (code, _, err) = run(&["words", "say", "--txet", "hi"]);
        assert!(code == 2 && err.contains("did you mean `text`?"), "{err}");
    }

    #[test]
    fn a_subcommand_with_a_text_of_its_own_has_help_of_its_own() {
        let app = App::new(test_registry()).with_tool_commands(
            "words",
            "Say words",
            [("say", "echo --text", "Say a word"), ("greet", "echo --text=hello", "Say hello")],
        );
        let run = |words: &[&str]| {
            let ran = TestCli::default().run_app(&app, words);
            (ran.code, ran.out)
        };
        let (_, listed) = run(&["words", "--help"]);
        assert!(listed.contains("Say a word") && listed.contains("Say hello"), "{listed}");
        for words in [
            &["words", "say", "--help"][..],
            &["words", "say", "x", "-h"],
            &["help", "words", "say"],
        ] {
            let (code, out) = run(words);
            assert!(code == 0 && out.starts_with("Say a word"), "{out}");
            assert!(out.contains("words say") && out.contains("--text <STRING>"), "{out}");
            assert!(out.contains("[TEXT]"), "{out}");
        }
        let (_, out) = run(&["words", "greet", "--help"]);
        assert!(out.starts_with("Say hello") && !out.contains("--text"), "{out}");
        assert_eq!(run(&["words", "say", "hi"]), (0, "hi\n".to_owned()));
        assert_eq!(run(&["words", "greet"]), (0, "hello\n".to_owned()));
    }

    #[test]
    fn help_lists_the_subcommands_and_the_flags_of_a_tool() {
        let (code, out, _) = run(&["words", "--help"]);
        assert!(code == 0 && out.contains("say") && out.contains("Says it again"), "{out}");
        let (_, out, _) = run(&["--help"]);
        assert!(out.contains("words") && out.contains("Say words"), "{out}");
        for words in [&["words", "say", "--help"][..], &["help", "words", "say"]] {
            let (code, out, _) = run(words);
            assert!(code == 0 && out.contains("--text <STRING>"), "{out}");
        }
        let (code, _, err) = run(&["words", "shout"]);
        assert!(code == 2 && err.contains("shout"), "{err}");
        let (code, _, err) = run(&["words", "--no-input", "say"]);
        assert!(code == 2 && err.contains("right behind it"), "{err}");
    }
}
