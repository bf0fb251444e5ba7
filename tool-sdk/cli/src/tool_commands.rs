//! Commands of a program whose subcommands call tools, such as `pages add` for the tool `page_add`.
//!
//! **Invariant:** such a command is `call` with other words: the same flags, rules, approvals and exit
//! codes.

use std::ffi::OsString;

use clap::Command;
use tool_sdk_core::Toolset;

use super::exit::CommandError;
use super::{args, flag, style};

/// A command, and the tool of each of its subcommands, with flags behind its name.
#[derive(Debug)]
pub(super) struct ToolCommands {
    name: &'static str,
    about: &'static str,
    tools: Vec<(&'static str, &'static str)>,
}

impl ToolCommands {
    pub(super) fn new(
        name: &'static str,
        about: &'static str,
        tools: impl IntoIterator<Item = (&'static str, &'static str)>,
    ) -> Self {
        Self { name, about, tools: tools.into_iter().collect() }
    }

    /// Builds the clap command, which only serves help and completions.
    pub(super) fn build_command(&self, toolset: &Toolset) -> Command {
        let subcommand = |(name, tool): &(&'static str, &'static str)| {
            let tool = toolset.get(split_words(tool).0);
            let about = tool.map(|tool| first_sentence(&tool.definition().description));
            args::with_globals(Command::new(*name).about(about.unwrap_or_default()))
        };
        args::with_globals(
            Command::new(self.name)
                .about(self.about)
                .arg_required_else_help(true)
                .subcommand_required(true)
                .subcommands(self.tools.iter().map(subcommand)),
        )
    }

    /// Rewrites `NAME SUBCOMMAND …`, which starts at the word `at`, to `call TOOL …`. A word behind it
    /// that is no option is the main parameter of the tool.
    pub(super) fn rewrite_words(
        &self,
        words: &mut Vec<OsString>,
        at: usize,
        toolset: impl FnOnce() -> Toolset,
    ) {
        let is_help = words.get(at).is_some_and(|word| word == "help");
        let start = at + usize::from(is_help);
        let Some([name, subcommand]) = words.get(start..start + 2) else { return };
        let tool = self.tools.iter().find(|(known, _)| subcommand == known);
        let Some((_, tool)) = tool.filter(|_| name == self.name) else { return };
        let (tool, flags, open_flag) = split_words(tool);
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
        CommandError::usage(format_args!("`{name}` needs its subcommand right behind it"))
            .hint(format_args!("write options last, as in `{name} {} --json`", self.tools[0].0))
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
