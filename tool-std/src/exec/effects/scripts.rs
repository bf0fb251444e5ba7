//! Finds the words of a command that may name a script that it runs.
//!
//! **Invariant:** nothing here accesses a file.

use std::borrow::Cow;

use tool_shell_analysis::{ScriptAnalysis, SimpleCommand, WordCertainty};

use super::programs::{ProgramEffects, RunEffect};

/// The maximum number of words that may name a script.
const MAX_WORDS: usize = 1024;

/// Returns the commands whose scripts are inspected.
pub(crate) fn visible_commands(analysis: &ScriptAnalysis) -> impl Iterator<Item = &SimpleCommand> {
    analysis.commands.iter().filter(|command| !command.is_embedded)
}

/// Returns the directory that a command enters, if it does.
pub(crate) fn entered_folder(argv: &[String]) -> Option<&str> {
    let (head, words) = argv.split_first()?;
    let is_one = matches!(head.as_str(), "cd" | "pushd");
    is_one.then(|| words.iter().rfind(|word| !word.starts_with('-')).map_or("", String::as_str))
}

/// Returns the words of a command that may name a script.
pub(crate) fn script_words(argv: &[String]) -> impl Iterator<Item = Cow<'_, str>> {
    let (head, operands) = argv.split_at(argv.len().min(1));
    let own = head.iter().filter(|head| head.contains('/'));
    let runs = head.first().map(|program| ProgramEffects::find_runs(program));
    let reads = runs == Some(RunEffect::Script);
    let read = operands.iter().filter(move |word| reads && !word.starts_with('-'));
    let is_file = runs == Some(RunEffect::ScriptOption);
    let files = words_behind("-f", operands).filter(move |_| is_file);
    let modules = words_behind("-m", operands).filter(move |_| reads).flat_map(|module| {
        let path = module.replace('.', "/");
        [format!("{path}.py"), format!("{path}/__main__.py")]
    });
    let plain = own.chain(read).map(|word| Cow::Borrowed(word.as_str()));
    plain.chain(files.map(Cow::Borrowed)).chain(modules.map(Cow::Owned))
}

/// Returns the values of a short option, in the same word or in the next.
fn words_behind<'a>(option: &'a str, words: &'a [String]) -> impl Iterator<Item = &'a str> {
    words.iter().enumerate().filter_map(move |(at, word)| {
        let rest = word.strip_prefix(option).or_else(|| word.strip_prefix("--file="))?;
        if rest.is_empty() { words.get(at + 1).map(String::as_str) } else { Some(rest) }
    })
}

/// Whether a program of the line executes its standard input.
pub(crate) fn has_input_reader(analysis: &ScriptAnalysis) -> bool {
    visible_commands(analysis).any(|command| reads_input(&command.argv))
}

/// Whether a program of the line may run a file that the line mentions.
pub(crate) fn may_run_files(analysis: &ScriptAnalysis) -> bool {
    let is_known = |it: &SimpleCommand| {
        let program = it.argv.first();
        it.is_safe || program.is_some_and(|it| ProgramEffects::find_runs(it) == RunEffect::Nothing)
    };
    !visible_commands(analysis).all(is_known) || analysis.commands.is_empty()
}

/// Whether a program of the line may add a file extension to a name.
pub(crate) fn adds_extensions(analysis: &ScriptAnalysis) -> bool {
    visible_commands(analysis).any(|it| {
        it.argv
            .first()
            .is_some_and(|program| ProgramEffects::find_runs(program) == RunEffect::Script)
    })
}

/// Whether a program of the line runs files that another one finds: `find -exec sh {} +`.
pub(crate) fn runs_found_files(analysis: &ScriptAnalysis) -> bool {
    visible_commands(analysis).any(|command| {
        let Some(head) = command.argv.first() else { return false };
        // Bash expansions contain these characters; other unknown words come from another
        // program.
        let is_found = |(word, known): (&String, &WordCertainty)| {
            matches!(known, WordCertainty::SingleWord | WordCertainty::AnyWords)
                && !word.contains(['$', '`'])
        };
        let mut words = command.argv.iter().zip(&command.word_certainty);
        let is_own = words.next().is_some_and(is_found);
        is_own
            || ProgramEffects::find_runs(head) == RunEffect::Script
                && (command.has_open_end || words.any(is_found))
    })
}

/// Returns the words that may name a file which the command pipes into an interpreter.
pub(crate) fn input_words(argv: &[String]) -> impl Iterator<Item = Cow<'_, str>> {
    let words = argv.iter().skip(1).filter(|word| !word.starts_with('-'));
    words.map(|word| Cow::Borrowed(word.as_str()))
}

/// Whether it executes its standard input.
fn reads_input(argv: &[String]) -> bool {
    let Some((head, words)) = argv.split_first() else { return false };
    let is_one = ProgramEffects::find_runs(head) == RunEffect::Script
        && !matches!(head.as_str(), "." | "source");
    is_one && words.iter().all(|word| word.starts_with('-'))
}

/// Whether there are too many script words to look up each.
pub(crate) fn has_too_many_words(analysis: &ScriptAnalysis) -> bool {
    visible_commands(analysis)
        .flat_map(|command| script_words(&command.argv))
        .nth(MAX_WORDS)
        .is_some()
}

#[cfg(test)]
mod tests {
    use tool_shell_analysis::analyze_script;

    use super::*;

    #[test]
    fn every_word_that_may_name_a_script_is_looked_for() {
        for (script, expected) in [
            ("./a b", &["./a"][..]),
            ("perl5.36-x86_64-linux-gnu a", &["a"]),
            ("nodejs a", &["a"]),
            ("Rscript a", &["a"]),
            ("python3.12 -W a b c", &["a", "b", "c"]),
            ("/bin/sh a", &["/bin/sh", "a"]),
            ("cat a", &[]),
            ("awk -f a b", &["a"]),
            ("sed -fa --file=b c", &["a", "b"]),
            ("python3 -m a.b c", &["a.b", "c", "a/b.py", "a/b/__main__.py"]),
        ] {
            let analysis = analyze_script(script);
            assert_eq!(script_words(&analysis.commands[0].argv).collect::<Vec<_>>(), expected);
        }
        let with = |count: usize| analyze_script(&format!("perl -e x{}", " a".repeat(count)));
        assert!(!has_too_many_words(&with(MAX_WORDS - 1)));
        assert!(has_too_many_words(&with(MAX_WORDS)));
        assert!(!has_too_many_words(&analyze_script(&format!(
            "cat{}",
            " a".repeat(MAX_WORDS + 1)
        ))));
        let late = format!("{}perl{}", "true; ".repeat(40), " a".repeat(MAX_WORDS + 1));
        assert!(has_too_many_words(&analyze_script(&late)));
    }

    #[test]
    fn found_files_may_be_scripts() {
        for (script, expected) in [
            ("find sub -exec sh {} +", true),
            ("find sub -type f | xargs sh", true),
            ("ls | xargs -I@ ./@", true),
            ("ls | xargs -n1 timeout 5 sh", true),
            ("find sub | xargs cat", false),
            ("sh $x", false),
            ("sh \"$(echo x)\"", false),
            ("sh *", false),
        ] {
            assert_eq!(runs_found_files(&analyze_script(script)), expected, "{script}");
        }
    }
}
