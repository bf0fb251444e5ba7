//! Takes commands apart until nothing hides in them, and says of each what is known.
//!
//! Scripts and commands wait in queues, so that no depth of nesting costs stack. What is
//! deeper than [`MAX_DEPTH`] is still listed, but asks.

mod builtins;
mod job;

use std::collections::{HashSet, VecDeque};

use self::builtins::does_itself;
use self::job::{Job, Script};
use super::login::without_login;
use super::places::{Place, Places};
use super::unwrap::{Language, Layer, unwrap};
use super::word::{Word, bare_name};
use super::{Simple, Understood, Why, danger, find, folders, hidden, known, lex, rawcheck, rich};

/// How many layers of commands and scripts are taken off.
const MAX_DEPTH: usize = 8;

/// Where every word may begin a command, and what is in there is only listed.
const LAST_DEPTH: usize = MAX_DEPTH + 1;

/// How many words are listed of what may or may not be a command.
const GUESSED_WORDS: usize = 10;

/// The longest script or argument list that is looked at, in bytes. No system starts a program
/// with a longer argument than this.
pub(crate) const MAX_BYTES: usize = 128 * 1024;

/// How much work one command line may be.
pub(super) const MAX_WORK: usize = 448 * 1024;

/// What it costs to list a command, what may be one, and a word, in bytes that are looked at.
const COMMAND: usize = 200;
const HIDDEN: usize = 60;
const WORD: usize = 16;

/// How many words are listed of a script that is not understood.
const MAX_FOUND: usize = 10 * 1024;

/// What is known so far.
#[derive(Default)]
pub(super) struct Judge {
    scripts: VecDeque<Script>,
    jobs: VecDeque<Job>,
    /// Texts that some command gets as its input.
    inputs: Vec<String>,
    reads_input: bool,
    /// The texts of commands, once the script is not understood.
    seen: HashSet<String>,
    /// The texts of scripts inside of commands.
    seen_scripts: HashSet<String>,
    /// The texts of what may be a command.
    seen_hidden: HashSet<String>,
    /// Texts that some command gets as its input may be code.
    reads_code: bool,
    /// Texts that commands write for others to read.
    said: Vec<String>,
    places: Places,
    answer: Understood,
    /// Bytes of scripts and of commands that were looked at.
    work: usize,
}

/// How much work a script is.
#[cfg(test)]
pub(super) fn work(text: &str) -> usize {
    let mut judge = Judge::default();
    judge.start(text);
    judge.run();
    judge.work
}

impl Judge {
    pub(super) fn script(mut self, text: &str) -> Understood {
        self.start(text);
        self.run();
        self.answer
    }

    fn start(&mut self, text: &str) {
        self.answer.plain = true;
        if text.len() > MAX_BYTES {
            return self.cut();
        }
        self.read(&Script {
            text: text.to_owned(),
            language: Language::Bash,
            inner: false,
            depth: 0,
            place: Place::START,
        });
        self.answer.direct = self.answer.plain && self.is_direct();
    }

    pub(super) fn argv(mut self, argv: &[String]) -> Understood {
        self.answer.plain = true;
        self.answer.direct = true;
        // To the system, too, each word has an end.
        if argv.iter().map(|word| word.len() + 1).sum::<usize>() > MAX_BYTES {
            self.cut();
            return self.answer;
        }
        let text = argv.join("\n");
        if let Err(why) = rawcheck::check(&text) {
            self.opaque(why);
        }
        if argv.first().is_none_or(String::is_empty) {
            self.opaque(Why::Empty);
        }
        if argv.len() > lex::MAX_WORDS {
            self.opaque(Why::TooMany);
        }
        let words = without_login(argv).iter().map(|word| Word::literal(word)).collect();
        self.command(words, false, 0, Place::START);
        self.run();
        self.answer
    }

    fn opaque(&mut self, why: Why) {
        self.answer.opaque.get_or_insert(why);
        self.answer.plain = false;
        self.answer.direct = false;
    }

    /// Gives up: what is left would be too much work.
    fn cut(&mut self) {
        self.opaque(Why::TooLong);
        self.answer.cut = true;
    }

    /// Whether the only command so far can be run without a shell.
    fn is_direct(&self) -> bool {
        let Some(job) = self.jobs.front().filter(|_| self.jobs.len() == 1) else { return false };
        job.words.iter().all(Word::is_literal) && !does_itself(&job.words)
    }

    /// Works until nothing waits.
    fn run(&mut self) {
        loop {
            if self.work > MAX_WORK {
                self.cut();
                break;
            }
            if let Some(job) = self.jobs.pop_front() {
                self.judge(&job);
            } else if let Some(script) = self.scripts.pop_front() {
                self.read(&script);
            } else if self.reads_input && !self.inputs.is_empty() {
                self.opaque(Why::Sourced);
                for text in std::mem::take(&mut self.inputs) {
                    self.answer.obeyed.push((text.clone(), true));
                    self.scripts.push_back(Script {
                        text,
                        language: Language::Other,
                        inner: true,
                        depth: 1,
                        place: Place::ELSEWHERE,
                    });
                }
            } else if self.reads_code && !self.inputs.is_empty() {
                self.said.append(&mut self.inputs);
            } else if (self.reads_code || self.reads_input) && !self.said.is_empty() {
                for text in std::mem::take(&mut self.said) {
                    self.look_into(&text);
                    self.answer.obeyed.push((text, self.reads_input));
                }
            } else {
                break;
            }
        }
        self.look_at_folders();
        self.look_at_files();
    }

    /// Looks for the commands of a script.
    fn read(&mut self, script: &Script) {
        self.work += script.text.len();
        if script.language == Language::Other {
            self.opaque(Why::OtherShell);
            self.find(script);
            return;
        }
        if let Err(why) = rawcheck::check(&script.text) {
            self.opaque(why);
            self.find(script);
            return;
        }
        let outer = script.place;
        if outer.sole && outer.stays && self.answer.moves.is_empty() {
            self.answer.led = folders::leading(&script.text);
            self.answer.opens_led = self.answer.led > 0 && !self.places.has_files();
        }
        if let Some(commands) = lex::lex(&script.text) {
            let place = Place { sole: outer.sole && commands.len() == 1, ..outer };
            for words in commands {
                self.command(words, script.inner, script.depth, place);
            }
            return;
        }
        self.answer.plain = false;
        match rich::scan(&script.text) {
            // Other shells agree with bash on plain scripts only.
            Ok(_) if script.language == Language::Sh => {
                self.opaque(Why::OtherShell);
                self.find(script);
            }
            Ok(scan) => {
                let sole = outer.sole && scan.commands.len() == 1;
                for command in scan.commands {
                    let at = if outer.sole { command.at } else { outer.at };
                    let place = Place { at, sole, ..outer };
                    let inner = script.inner || command.inner;
                    self.command(command.words, inner, script.depth, place);
                }
                self.places.opens(scan.files, outer);
                self.inputs.extend(scan.inputs);
            }
            Err(why) => {
                self.opaque(why);
                self.find(script);
            }
        }
    }

    /// Lists what might be commands in a script that is not understood.
    fn find(&mut self, script: &Script) {
        self.work += script.text.len();
        let found = find::find(&script.text, MAX_FOUND);
        if found.cut {
            return self.cut();
        }
        for words in found.commands {
            self.command(words, script.inner, script.depth, script.place);
        }
        self.answer.unsettled |= !script.place.stays && !found.writes.is_empty();
        self.answer.writes.extend(found.writes);
        self.answer.may_read.extend(found.reads);
    }

    fn command(&mut self, words: Vec<Word>, inner: bool, depth: usize, place: Place) {
        let range = 0..words.len();
        let (open_end, is_guess, is_found) = (false, false, false);
        self.jobs.push_back(Job {
            words: words.into(),
            range,
            inner,
            depth,
            place,
            open_end,
            is_guess,
            is_found,
        });
    }

    /// Lists what may be commands in a text that no shell here reads.
    fn look_into(&mut self, text: &str) {
        self.work += 2 * text.len();
        let (seen, commands) = (&mut self.seen_hidden, &mut self.answer.commands);
        let work = &mut self.work;
        hidden::commands(text, |program, text| {
            *work += HIDDEN + text.len();
            if *work <= MAX_WORK && seen.insert(text.clone()) {
                commands.push(Simple {
                    argv: vec![program.to_owned()],
                    dangerous: danger::is_destructive_text(&text),
                    text,
                    inner: true,
                    asks: None,
                    safe: false,
                    hidden: true,
                    known: Vec::new(),
                    is_nameless: false,
                    may_be_alias: false,
                    open_end: false,
                    elsewhere: false,
                    looks: false,
                });
            }
        });
    }

    fn judge(&mut self, job: &Job) {
        let words = &job.words[job.range.clone()];
        if words.is_empty() {
            return;
        }
        let shown = if job.is_guess { &words[..words.len().min(GUESSED_WORDS)] } else { words };
        if job.depth > MAX_DEPTH {
            self.opaque(Why::TooDeep);
        }
        let text = text(shown);
        self.work += COMMAND + text.len() + WORD * shown.len();
        if self.answer.opaque.is_some() && !self.seen.insert(text.clone()) {
            return;
        }
        let layer = match job.depth {
            LAST_DEPTH if !job.is_guess => Layer::anywhere(words),
            0..=LAST_DEPTH => unwrap(shown),
            _ => Layer::default(),
        };
        let simple = known::simple(shown, text, job.open_end, &layer);
        let elsewhere = !job.place.stays;
        // Where these files lie, no word of its own says.
        let safe = simple.safe && !job.is_found;
        let simple = Simple { inner: job.inner, elsewhere, safe, looks: safe, ..simple };
        if matches!(&*words[0].value, "cd" | "pushd" | "popd") {
            self.places.moves(job.place);
            self.answer.moves.push(folders::target(shown));
        }
        if !job.is_guess && known::may_rename(words, job.open_end, &simple, &layer) {
            self.places.renames(job.place);
        }
        let asks = simple.asks;
        self.answer.commands.push(simple);
        self.follow(job, layer);
        self.reads_code |= hidden::reads_code(shown);
        if matches!(&*words[0].value, "echo" | "printf") {
            let said = shown[1..].iter().map(|word| &*word.value);
            self.said.push(said.collect::<Vec<_>>().join(" "));
        }
        // A command may be one of the words, or several.
        let texts: Vec<&str> = hidden::texts(shown, asks).iter().map(|word| &*word.value).collect();
        let Some((_, before)) = texts.split_last() else { return };
        for text in before.iter().filter(|text| text.contains([' ', '\t', '\n'])) {
            self.look_into(text);
        }
        self.look_into(&texts.join(" "));
    }

    /// Queues what a command runs.
    fn follow(&mut self, job: &Job, layer: Layer) {
        let depth = job.depth + 1;
        let is_all = layer.is_transparent && layer.inner.len() + layer.scripts.len() == 1;
        let (stays, sole) = (job.place.stays && layer.stays, job.place.sole && is_all);
        let place = Place { stays, sole, ..job.place };
        self.reads_input |= layer.reads_input;
        for (text, language) in layer.scripts {
            let language = if depth > MAX_DEPTH { Language::Other } else { language };
            if depth > MAX_DEPTH {
                self.opaque(Why::TooDeep);
            }
            if self.seen_scripts.insert(text.clone()) {
                self.scripts.push_back(Script { text, language, inner: true, depth, place });
            }
        }
        for words in layer.others {
            let (range, words) = (0..words.len(), words.into());
            self.jobs.push_back(Job { range, words, inner: true, depth, place, ..job.clone() });
        }
        // All later words are listed already.
        if job.is_guess {
            return;
        }
        let is_guess = layer.is_guess;
        for range in layer.inner {
            let start = job.range.start;
            // What comes at its end comes at that of the command inside.
            let goes_on = job.open_end && start + range.end == job.range.end;
            let inner = Job {
                range: start + range.start..start + range.end,
                inner: true,
                depth: if is_guess { job.depth } else { depth },
                place,
                open_end: layer.open_end || goes_on,
                is_guess,
                ..job.clone()
            };
            self.jobs.push_back(inner.open(layer.placeholder.as_ref()));
        }
    }

    /// The configuration of another repository may run programs.
    fn look_at_folders(&mut self) {
        if self.places.is_moved() {
            for simple in &mut self.answer.commands {
                simple.safe &= bare_name(&simple.argv[0]) != "git";
            }
        }
    }

    fn look_at_files(&mut self) {
        self.answer.opens_led &= self.answer.moves.len() == self.answer.led;
        for (file, doubt) in self.places.files(self.answer.opens_led) {
            if let Some(why) = doubt {
                self.opaque(why);
                // An absolute path stays what it is in any folder.
                self.answer.unsettled |= why == Why::Renamed || file.path.starts_with('/');
            }
            let paths =
                if file.is_written { &mut self.answer.writes } else { &mut self.answer.reads };
            paths.push(file.path);
        }
        self.answer.renames = self.places.is_renamed();
        // In what order commands run is not known then.
        self.answer.unsettled |= self.answer.opaque.is_some() && self.places.is_renamed();
    }
}

/// The words with single blanks between them.
fn text(words: &[Word]) -> String {
    let mut text = String::with_capacity(words.iter().map(|word| word.shown.len() + 1).sum());
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&word.shown);
    }
    text
}
