//! The analyzer: splits scripts into commands, unwraps nested commands, and classifies each one.
//!
//! Scripts and commands wait in queues, so that nesting costs no stack. Commands nested deeper
//! than [`MAX_DEPTH`] are still listed, but need approval.

mod builtins;
mod queue;

use std::collections::{HashSet, VecDeque};

use self::builtins::is_bash_specific;
use self::queue::{QueuedCommand, QueuedScript};
use super::execution_order::{CommandPosition, ExecutionOrder};
use super::login_shell::strip_login_option;
use super::word::{ShellWord, bare_name};
use super::wrappers::{ScriptLanguage, WrapperLayer, unwrap_layer};
use super::{
    OpaqueReason, ScriptAnalysis, SimpleCommand, classify, dangerous, embedded_commands,
    fallback_scan, leading_cd, lexer, parser, raw_text,
};

/// The maximum number of layers of commands and scripts that are unwrapped.
const MAX_DEPTH: usize = 8;

/// At this depth every word may begin a command, and nested commands are only listed.
const LAST_DEPTH: usize = MAX_DEPTH + 1;

/// How many words of a guessed command are listed.
const MAX_GUESSED_WORDS: usize = 10;

/// The maximum length of an analysed script or argument list, in bytes. No system starts a
/// program with a longer argument.
pub const MAX_BYTES: usize = 128 * 1024;

/// The work limit for one command line, in units of analysed bytes.
pub(super) const MAX_WORK: usize = 448 * 1024;

/// The cost of listing a command, an embedded command, and a word, in units of analysed bytes.
const COMMAND_COST: usize = 200;
const EMBEDDED_COST: usize = 60;
const WORD_COST: usize = 16;

/// How many words of an opaque script are listed.
const MAX_FALLBACK_WORDS: usize = 10 * 1024;

/// The queues and the result of the analysis.
#[derive(Default)]
pub(super) struct ScriptAnalyzer {
    queued_scripts: VecDeque<QueuedScript>,
    queued_commands: VecDeque<QueuedCommand>,
    /// The contents of heredocs and here-strings.
    inputs: Vec<String>,
    shell_reads_input: bool,
    /// The texts of listed commands, once the script is opaque.
    seen_commands: HashSet<String>,
    /// The texts of nested scripts.
    seen_scripts: HashSet<String>,
    /// The texts of embedded commands.
    seen_embedded: HashSet<String>,
    /// Whether a program executes code from its input.
    program_reads_code: bool,
    /// Arguments of `echo` and `printf`, which may be piped into an interpreter.
    echoed_texts: Vec<String>,
    order: ExecutionOrder,
    analysis: ScriptAnalysis,
    /// The work done so far, in bytes of scripts and commands.
    work: usize,
}

/// Returns the work that the analysis of a script takes.
#[cfg(test)]
pub(super) fn work(text: &str) -> usize {
    let mut judge = ScriptAnalyzer::default();
    judge.start_script(text);
    judge.process_queues();
    judge.work
}

impl ScriptAnalyzer {
    pub(super) fn analyze_script(mut self, text: &str) -> ScriptAnalysis {
        self.start_script(text);
        self.process_queues();
        self.analysis
    }

    fn start_script(&mut self, text: &str) {
        self.analysis.is_plain = true;
        if text.len() > MAX_BYTES {
            return self.mark_truncated();
        }
        self.read_script(&QueuedScript {
            text: text.to_owned(),
            language: ScriptLanguage::Bash,
            is_nested: false,
            depth: 0,
            position: CommandPosition::START,
        });
        self.analysis.is_direct = self.analysis.is_plain && self.is_direct();
    }

    pub(super) fn analyze_argv(mut self, argv: &[String]) -> ScriptAnalysis {
        self.analysis.is_plain = true;
        self.analysis.is_direct = true;
        // The system counts the terminating NUL of each word, too.
        if argv.iter().map(|word| word.len() + 1).sum::<usize>() > MAX_BYTES {
            self.mark_truncated();
            return self.analysis;
        }
        let text = argv.join("\n");
        if let Err(why) = raw_text::check_raw_text(&text) {
            self.mark_opaque(why);
        }
        if argv.first().is_none_or(String::is_empty) {
            self.mark_opaque(OpaqueReason::Empty);
        }
        if argv.len() > lexer::MAX_WORDS {
            self.mark_opaque(OpaqueReason::TooMany);
        }
        let words =
            strip_login_option(argv).iter().map(|word| ShellWord::from_literal(word)).collect();
        self.queue_command(words, false, 0, CommandPosition::START);
        self.process_queues();
        self.analysis
    }

    fn mark_opaque(&mut self, why: OpaqueReason) {
        self.analysis.opaque.get_or_insert(why);
        self.analysis.is_plain = false;
        self.analysis.is_direct = false;
    }

    /// Stops the analysis because the rest would exceed the work limit.
    fn mark_truncated(&mut self) {
        self.mark_opaque(OpaqueReason::TooLong);
        self.analysis.is_truncated = true;
    }

    /// Whether the script is one command that can be run without a shell.
    fn is_direct(&self) -> bool {
        let Some(job) = self.queued_commands.front().filter(|_| self.queued_commands.len() == 1)
        else {
            return false;
        };
        job.words.iter().all(ShellWord::is_literal) && !is_bash_specific(&job.words)
    }

    /// Processes the queues until they are empty.
    fn process_queues(&mut self) {
        loop {
            if self.work > MAX_WORK {
                self.mark_truncated();
                break;
            }
            if let Some(job) = self.queued_commands.pop_front() {
                self.analyze_command(&job);
            } else if let Some(script) = self.queued_scripts.pop_front() {
                self.read_script(&script);
            } else if self.shell_reads_input && !self.inputs.is_empty() {
                self.mark_opaque(OpaqueReason::SourcedCommands);
                for text in std::mem::take(&mut self.inputs) {
                    self.analysis.code_inputs.push((text.clone(), true));
                    self.queued_scripts.push_back(QueuedScript {
                        text,
                        language: ScriptLanguage::Other,
                        is_nested: true,
                        depth: 1,
                        position: CommandPosition::UNKNOWN,
                    });
                }
            } else if self.program_reads_code && !self.inputs.is_empty() {
                self.echoed_texts.append(&mut self.inputs);
            } else if (self.program_reads_code || self.shell_reads_input)
                && !self.echoed_texts.is_empty()
            {
                for text in std::mem::take(&mut self.echoed_texts) {
                    self.list_embedded(&text);
                    self.analysis.code_inputs.push((text, self.shell_reads_input));
                }
            } else {
                break;
            }
        }
        self.apply_folder_changes();
        self.record_files();
    }

    /// Parses a script and queues its commands.
    fn read_script(&mut self, script: &QueuedScript) {
        self.work += script.text.len();
        if script.language == ScriptLanguage::Other {
            self.mark_opaque(OpaqueReason::OtherShell);
            self.scan_opaque_script(script);
            return;
        }
        if let Err(why) = raw_text::check_raw_text(&script.text) {
            self.mark_opaque(why);
            self.scan_opaque_script(script);
            return;
        }
        let outer = script.position;
        if outer.is_only_command && outer.keeps_folder && self.analysis.folder_changes.is_empty() {
            self.analysis.leading_changes = leading_cd::count_leading_cd(&script.text);
            self.analysis.redirects_follow_changes =
                self.analysis.leading_changes > 0 && !self.order.has_files();
        }
        if let Some(commands) = lexer::tokenize(&script.text) {
            let place = CommandPosition {
                is_only_command: outer.is_only_command && commands.len() == 1,
                ..outer
            };
            for words in commands {
                self.queue_command(words, script.is_nested, script.depth, place);
            }
            return;
        }
        self.analysis.is_plain = false;
        match parser::parse_script(&script.text) {
            // Other shells agree with bash on plain scripts only.
            Ok(_) if script.language == ScriptLanguage::Sh => {
                self.mark_opaque(OpaqueReason::OtherShell);
                self.scan_opaque_script(script);
            }
            Ok(scan) => {
                let sole = outer.is_only_command && scan.commands.len() == 1;
                for command in scan.commands {
                    let at = if outer.is_only_command { command.offset } else { outer.offset };
                    let place = CommandPosition {
                        offset: at,
                        is_only_command: sole && !command.is_repeated,
                        is_repeated: outer.is_repeated || command.is_repeated,
                        ..outer
                    };
                    let inner = script.is_nested || command.is_nested;
                    self.queue_command(command.words, inner, script.depth, place);
                }
                self.order.record_files(scan.files, outer);
                self.inputs.extend(scan.inputs);
            }
            Err(why) => {
                self.mark_opaque(why);
                self.scan_opaque_script(script);
            }
        }
    }

    /// Queues the possible commands of an opaque script.
    fn scan_opaque_script(&mut self, script: &QueuedScript) {
        self.work += script.text.len();
        let found = fallback_scan::scan_commands(&script.text, MAX_FALLBACK_WORDS);
        if found.is_truncated {
            return self.mark_truncated();
        }
        for words in found.commands {
            self.queue_command(words, script.is_nested, script.depth, script.position);
        }
        self.analysis.has_unstable_paths |=
            !script.position.keeps_folder && !found.writes.is_empty();
        self.analysis.writes.extend(found.writes);
        self.analysis.possible_reads.extend(found.reads);
    }

    fn queue_command(
        &mut self,
        words: Vec<ShellWord>,
        inner: bool,
        depth: usize,
        place: CommandPosition,
    ) {
        let range = 0..words.len();
        let (open_end, is_guess, is_found) = (false, false, false);
        self.queued_commands.push_back(QueuedCommand {
            words: words.into(),
            range,
            is_nested: inner,
            depth,
            position: place,
            has_open_end: open_end,
            is_guess,
            uses_found_files: is_found,
        });
    }

    /// Lists the commands embedded in text that bash does not parse.
    fn list_embedded(&mut self, text: &str) {
        self.work += 2 * text.len();
        let (seen, commands) = (&mut self.seen_embedded, &mut self.analysis.commands);
        let work = &mut self.work;
        embedded_commands::find_commands(text, |program, text| {
            *work += EMBEDDED_COST + text.len();
            if *work <= MAX_WORK && seen.insert(text.clone()) {
                commands.push(SimpleCommand {
                    argv: vec![program.to_owned()],
                    is_dangerous: dangerous::is_destructive_text(&text),
                    text,
                    is_nested: true,
                    approval_reason: None,
                    is_safe: false,
                    is_embedded: true,
                    word_certainty: Vec::new(),
                    hides_commands: false,
                    may_be_alias: false,
                    has_open_end: false,
                    may_run_elsewhere: false,
                    is_read_only: false,
                });
            }
        });
    }

    fn analyze_command(&mut self, job: &QueuedCommand) {
        let words = &job.words[job.range.clone()];
        if words.is_empty() {
            return;
        }
        let shown = if job.is_guess { &words[..words.len().min(MAX_GUESSED_WORDS)] } else { words };
        if job.depth > MAX_DEPTH {
            self.mark_opaque(OpaqueReason::TooDeep);
        }
        let text = join_words(shown);
        self.work += COMMAND_COST + text.len() + WORD_COST * shown.len();
        if self.analysis.opaque.is_some() && !self.seen_commands.insert(text.clone()) {
            return;
        }
        let layer = match job.depth {
            LAST_DEPTH if !job.is_guess => WrapperLayer::guess_anywhere(words),
            0..=LAST_DEPTH => unwrap_layer(shown),
            _ => WrapperLayer::default(),
        };
        let command = classify::classify_command(shown, text, job.has_open_end, &layer);
        let elsewhere = !job.position.keeps_folder;
        // The files come from another command, not from its own words.
        let safe = command.is_safe && !job.uses_found_files;
        let command = SimpleCommand {
            is_nested: job.is_nested,
            may_run_elsewhere: elsewhere,
            is_safe: safe,
            is_read_only: safe,
            ..command
        };
        if matches!(&*words[0].value, "cd" | "pushd" | "popd") {
            self.order.record_folder_change(job.position);
            // A repeated change leads further each time.
            let target = leading_cd::cd_target(shown).filter(|_| !job.position.is_repeated);
            self.analysis.folder_changes.push(target);
        }
        if !job.is_guess && classify::may_rename_files(words, job.has_open_end, &command, &layer) {
            self.order.record_rename(job.position);
        }
        let asks = command.approval_reason;
        self.analysis.commands.push(command);
        self.queue_nested(job, layer);
        self.program_reads_code |= embedded_commands::reads_code(shown);
        if matches!(&*words[0].value, "echo" | "printf") {
            let said = shown[1..].iter().map(|word| &*word.value);
            self.echoed_texts.push(said.collect::<Vec<_>>().join(" "));
        }
        // An embedded command may be one word or span several.
        let texts: Vec<&str> = embedded_commands::embedded_texts(shown, asks)
            .iter()
            .map(|word| &*word.value)
            .collect();
        let Some((_, before)) = texts.split_last() else { return };
        for text in before.iter().filter(|text| text.contains([' ', '\t', '\n'])) {
            self.list_embedded(text);
        }
        self.list_embedded(&texts.join(" "));
    }

    /// Queues the commands and scripts that a command runs.
    fn queue_nested(&mut self, job: &QueuedCommand, layer: WrapperLayer) {
        let depth = job.depth + 1;
        let is_all = layer.is_transparent && layer.command_ranges.len() + layer.scripts.len() == 1;
        let (stays, sole) = (
            job.position.keeps_folder && layer.keeps_folder,
            job.position.is_only_command && is_all,
        );
        let place = CommandPosition { keeps_folder: stays, is_only_command: sole, ..job.position };
        self.shell_reads_input |= layer.reads_input;
        for (text, language) in layer.scripts {
            let language = if depth > MAX_DEPTH { ScriptLanguage::Other } else { language };
            if depth > MAX_DEPTH {
                self.mark_opaque(OpaqueReason::TooDeep);
            }
            if self.seen_scripts.insert(text.clone()) {
                self.queued_scripts.push_back(QueuedScript {
                    text,
                    language,
                    is_nested: true,
                    depth,
                    position: place,
                });
            }
        }
        for words in layer.other_commands {
            let (range, words) = (0..words.len(), words.into());
            self.queued_commands.push_back(QueuedCommand {
                range,
                words,
                is_nested: true,
                depth,
                position: place,
                ..job.clone()
            });
        }
        // The later words are already listed.
        if job.is_guess {
            return;
        }
        let is_guess = layer.is_guess;
        for range in layer.command_ranges {
            let start = job.range.start;
            // Words appended to the wrapper are appended to the nested command.
            let goes_on = job.has_open_end && start + range.end == job.range.end;
            let inner = QueuedCommand {
                range: start + range.start..start + range.end,
                is_nested: true,
                depth: if is_guess { job.depth } else { depth },
                position: place,
                has_open_end: layer.has_open_end || goes_on,
                is_guess,
                ..job.clone()
            };
            self.queued_commands.push_back(inner.with_placeholder(layer.placeholder.as_ref()));
        }
    }

    /// After `cd`, git is not read-only: the settings of another repository may run programs.
    fn apply_folder_changes(&mut self) {
        if self.order.has_folder_changes() {
            for command in &mut self.analysis.commands {
                command.is_safe &= bare_name(&command.argv[0]) != "git";
            }
        }
    }

    fn record_files(&mut self) {
        self.analysis.redirects_follow_changes &=
            self.analysis.folder_changes.len() == self.analysis.leading_changes;
        for (file, doubt) in self.order.take_files(self.analysis.redirects_follow_changes) {
            if let Some(why) = doubt {
                self.mark_opaque(why);
                // An absolute path does not depend on the directory.
                self.analysis.has_unstable_paths |=
                    why == OpaqueReason::FileRenamed || file.path.starts_with('/');
            }
            let paths =
                if file.is_written { &mut self.analysis.writes } else { &mut self.analysis.reads };
            paths.push(file.path);
        }
        self.analysis.may_rename_files = self.order.has_renames();
        // The order of the commands in an opaque script is unknown.
        self.analysis.has_unstable_paths |=
            self.analysis.opaque.is_some() && self.order.has_renames();
    }
}

/// Joins the rule texts of the words with single spaces.
fn join_words(words: &[ShellWord]) -> String {
    let mut text = String::with_capacity(words.iter().map(|word| word.rule_text.len() + 1).sum());
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&word.rule_text);
    }
    text
}
