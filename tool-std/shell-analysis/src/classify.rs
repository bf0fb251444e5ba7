//! Classifies one simple command: whether it is read-only, dangerous, or needs approval.
//!
//! The analyzer calls it after the wrapper layer of the command is known.
//!
//! **Invariant:** nothing here looks at other commands.

use super::program_names::canonical_name;
use super::word::{ShellWord, bare_name, has_bare_name, is_assignment};
use super::wrappers::WrapperLayer;
use super::{
    OpaqueReason, SimpleCommand, aliases, dangerous, embedded_commands, file_renames, safe, suggest,
};

/// Directories whose programs are trusted to be what their names say.
const TRUSTED_FOLDERS: &[&str] =
    &["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/// Classifies one command.
///
/// `text` is the joined text of the words; `open_end` means that more words may be appended at
/// run time.
pub(super) fn classify_command(
    words: &[ShellWord],
    text: String,
    open_end: bool,
    layer: &WrapperLayer,
) -> SimpleCommand {
    let head = &words[0];
    let is_unknown = head.is_unknown || head.value.is_empty() || head.is_glob && head.value != "[";
    let is_assigning = is_assignment(&head.value);
    let asks = if is_assigning && layer.is_transparent {
        // The command behind the assignments is judged on its own.
        None
    } else if is_unknown && !is_assigning {
        Some(OpaqueReason::UnknownProgram)
    } else if layer.approval_reason.is_some() {
        layer.approval_reason
    } else if open_end && layer.lacks_command {
        Some(OpaqueReason::WrapperOptions)
    } else if !is_action_known(words, open_end) {
        Some(OpaqueReason::UnknownAction)
    } else if dangerous::has_dangerous_argument(words, open_end) {
        Some(OpaqueReason::RiskyArgument)
    } else if words.iter().any(|word| word.has_parameter) && !reads_harmless_values(words) {
        Some(OpaqueReason::Parameter)
    } else {
        (!is_trusted_program(&head.value)).then_some(OpaqueReason::ProgramPath)
    };
    let is_nameless = match asks {
        Some(OpaqueReason::Parameter) => !safe::ALWAYS_SAFE.contains(&&*bare_name(&head.value)),
        Some(why @ (OpaqueReason::RiskyArgument | OpaqueReason::Assignment)) => {
            embedded_commands::hides_commands(words, why)
        }
        why => why.is_some_and(OpaqueReason::hides_commands),
    };
    let dangerous = dangerous::is_destructive(words, open_end);
    let is_harmless = || {
        let is_named = has_bare_name(&head.value) || is_assigning;
        is_named && (layer.is_transparent || safe::is_safe(words, open_end))
    };
    let looks = asks.is_none() && !dangerous && is_harmless();
    SimpleCommand {
        argv: words.iter().map(|word| word.value.clone()).collect(),
        text,
        is_nested: false,
        is_safe: looks,
        is_read_only: looks,
        approval_reason: asks,
        is_dangerous: dangerous,
        is_embedded: false,
        word_certainty: words.iter().map(ShellWord::certainty).collect(),
        hides_commands: is_nameless,
        may_be_alias: aliases::may_be_alias(words),
        has_open_end: open_end,
        may_run_elsewhere: false,
    }
}

/// Whether a read-only command prints values that every program may print, or reads files below
/// the home directory, which are judged as files.
fn reads_harmless_values(words: &[ShellWord]) -> bool {
    let program = &*words[0].value;
    let is_echo = program == "echo";
    is_echo && words.iter().all(ShellWord::has_only_harmless_values)
        || safe::ALWAYS_SAFE.contains(&program)
            && words.iter().all(|word| !word.has_parameter || word.is_home_path())
}

/// Whether the words that name the subcommand are known.
fn is_action_known(words: &[ShellWord], open_end: bool) -> bool {
    let operands = || words[1..].iter().filter(|word| !word.value.starts_with('-'));
    let program = canonical_name(&words[0].value);
    let first = operands().next().filter(|word| word.is_literal());
    let name: Vec<&str> =
        std::iter::once(&*program).chain(first.map(|word| &*word.value)).collect();
    let named = suggest::action_arity(&name).saturating_sub(1);
    // Missing words may be appended at run time.
    let is_there = !open_end || operands().take(named).count() == named;
    // Braces may only obscure the action.
    is_there && operands().take(named).all(|word| word.is_literal() && !word.is_from_braces)
}

/// Whether a command itself, without the commands that it wraps, may rename, link or mount files.
pub(super) fn may_rename_files(
    words: &[ShellWord],
    open_end: bool,
    command: &SimpleCommand,
    layer: &WrapperLayer,
) -> bool {
    let head = &words[0];
    let only_contains = !layer.is_guess
        && (!layer.command_ranges.is_empty() || !layer.scripts.is_empty())
        && command.approval_reason.is_none_or(|why| {
            matches!(why, OpaqueReason::Assignment | OpaqueReason::RiskyArgument)
        });
    if command.is_safe || only_contains || is_assignment(&head.value) {
        return false;
    }
    let is_named =
        head.is_literal() && is_trusted_program(&head.value) && has_bare_name(&head.value);
    let is_harmless = file_renames::never_renames_files(words, open_end)
        || safe::ALWAYS_SAFE.contains(&&*bare_name(&head.value));
    !(is_named && is_harmless)
}

/// Whether the program name can be trusted to identify the program.
fn is_trusted_program(program: &str) -> bool {
    match program.rsplit_once('/') {
        Some((folder, _)) => TRUSTED_FOLDERS.contains(&folder),
        None => !program.starts_with('~') && !program.contains('\\'),
    }
}
