//! The limits of calls: how long they may take, how much of their output is read and kept, and how
//! often one may be repeated.
//!
//! | option | variable | key | default |
//! |---|---|---|---|
//! | `--call-timeout` | `TOOL_SDK_CALL_TIMEOUT` | `call_timeout` | 2m |
//! | `--approval-timeout` | `TOOL_SDK_APPROVAL_TIMEOUT` | `approval_timeout` | 10m |
//! | `--output-lines` | `TOOL_SDK_MAX_OUTPUT_LINES` | `output_lines` | 2000 |
//! | `--output-bytes` | `TOOL_SDK_MAX_OUTPUT_BYTES` | `output_bytes` | 51200 |
//! | `--output-tokens` | `TOOL_SDK_MAX_OUTPUT_TOKENS` | `output_tokens` | – |
//! | `--outputs-max-age` | `TOOL_SDK_OUTPUTS_MAX_AGE` | `outputs_max_age` | 7d |
//! | `--capture-bytes` | `TOOL_SDK_CAPTURE_BYTES` | `capture_bytes` | 1048576 |
//! | `--loop-guard` | `TOOL_SDK_LOOP_GUARD` | `loop_guard.enabled` | on |
//! | `--loop-threshold` | `TOOL_SDK_LOOP_THRESHOLD` | `loop_guard.threshold` | 3 |
//! | `--loop-hard-stop` | `TOOL_SDK_LOOP_HARD_STOP` | `loop_guard.hard_stop` | 10 |
//! | `--loop-max-cycle` | `TOOL_SDK_LOOP_MAX_CYCLE` | `loop_guard.max_cycle` | 4 |
//! | `--loop-window` | `TOOL_SDK_LOOP_WINDOW` | `loop_guard.window` | 10m |
//! | `--loop-calls-per-minute` | `TOOL_SDK_LOOP_CALLS_PER_MINUTE` | `loop_guard.calls_per_minute` | 60 |
//!
//! **Invariant:** every limit is above zero.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use clap::{Arg, value_parser};
use serde::{Deserialize, Deserializer};
use tool_sdk_core::{Budget, LoopGuardSettings, internal::RETENTION};

use super::sources::SettingSources;
use crate::args;
use crate::exit::Result;

/// A duration as people write it: `30s`, `2m`, `3d`, `500ms`, or a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrittenDuration(pub(crate) Duration);

/// The units of durations, in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl FromStr for WrittenDuration {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = if unit.is_empty() { "s" } else { unit };
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        known
            .and_then(|(_, millis)| number.parse::<u64>().ok()?.checked_mul(*millis))
            .map(|millis| Self(Duration::from_millis(millis)))
            .ok_or_else(|| {
                format!("`{}` is not a duration such as 30s, 2m, 12h or 3d", text.escape_debug())
            })
            .and_then(|written| match written.0.is_zero() {
                true => Err("it must be longer than 0".to_owned()),
                false => Ok(written),
            })
    }
}

impl<'de> Deserialize<'de> for WrittenDuration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum TextOrSeconds {
            Text(String),
            Seconds(u64),
        }
        let text = match TextOrSeconds::deserialize(from)? {
            TextOrSeconds::Text(text) => text,
            TextOrSeconds::Seconds(seconds) => seconds.to_string(),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The limits of the configuration file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileLimits {
    pub(super) call_timeout: Option<WrittenDuration>,
    pub(super) approval_timeout: Option<WrittenDuration>,
    pub(super) output_lines: Option<NonZeroUsize>,
    pub(super) output_bytes: Option<NonZeroUsize>,
    pub(super) output_tokens: Option<NonZeroUsize>,
    pub(super) outputs_max_age: Option<WrittenDuration>,
    pub(super) capture_bytes: Option<NonZeroUsize>,
    pub(super) loop_guard: FileLoopGuard,
}

/// The table `[loop_guard]` of the configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileLoopGuard {
    enabled: Option<bool>,
    threshold: Option<NonZeroUsize>,
    hard_stop: Option<NonZeroUsize>,
    max_cycle: Option<NonZeroUsize>,
    window: Option<WrittenDuration>,
    calls_per_minute: Option<NonZeroUsize>,
}

/// The resolved limits.
#[derive(Clone, Debug)]
pub(crate) struct CallLimits {
    /// The time limit of calls whose tool has none of its own.
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) approval_timeout: Option<Duration>,
    pub(crate) budget: Budget,
    /// How long the whole texts of truncated outputs are kept.
    pub(crate) outputs_max_age: Duration,
    /// How many bytes of the output of a command are held.
    pub(crate) capture_bytes: Option<usize>,
    pub(crate) loop_guard: LoopGuardSettings,
}

/// The options of this module: name, placeholder and help.
const OPTIONS: [(&str, &str, &str); 13] = [
    (
        "call-timeout",
        "TIME",
        "How long a call may take, such as 30s or 5m, if its tool has no limit of its own [env: TOOL_SDK_CALL_TIMEOUT] [default: 2m]",
    ),
    (
        "approval-timeout",
        "TIME",
        "How long a call waits for an answer; none denies it [env: TOOL_SDK_APPROVAL_TIMEOUT] [default: 10m]",
    ),
    (
        "output-lines",
        "N",
        "How many lines of a result the model reads [env: TOOL_SDK_MAX_OUTPUT_LINES] [default: 2000]",
    ),
    (
        "output-bytes",
        "N",
        "How many bytes of a result the model reads [env: TOOL_SDK_MAX_OUTPUT_BYTES] [default: 51200]",
    ),
    (
        "output-tokens",
        "N",
        "The same in tokens of four bytes; the smaller limit applies [env: TOOL_SDK_MAX_OUTPUT_TOKENS]",
    ),
    (
        "outputs-max-age",
        "TIME",
        "How long whole outputs are kept, such as 3d [env: TOOL_SDK_OUTPUTS_MAX_AGE] [default: 7d]",
    ),
    (
        "capture-bytes",
        "N",
        "How many bytes of a command's output are held, half of them from the start [env: TOOL_SDK_CAPTURE_BYTES] [default: 1048576]",
    ),
    (
        "loop-guard",
        "on|off",
        "Whether calls that repeat without progress are asked about and refused [env: TOOL_SDK_LOOP_GUARD] [default: on]",
    ),
    (
        "loop-threshold",
        "N",
        "From which call in a row the user is asked [env: TOOL_SDK_LOOP_THRESHOLD] [default: 3]",
    ),
    (
        "loop-hard-stop",
        "N",
        "At which identical call it is refused [env: TOOL_SDK_LOOP_HARD_STOP] [default: 10]",
    ),
    (
        "loop-max-cycle",
        "N",
        "The longest cycle of calls that counts as a repetition [env: TOOL_SDK_LOOP_MAX_CYCLE] [default: 4]",
    ),
    (
        "loop-window",
        "TIME",
        "How long a call is remembered [env: TOOL_SDK_LOOP_WINDOW] [default: 10m]",
    ),
    (
        "loop-calls-per-minute",
        "N",
        "How many identical calls a minute are allowed without a conversation [env: TOOL_SDK_LOOP_CALLS_PER_MINUTE] [default: 60]",
    ),
];

/// Returns the options for the limits.
pub(crate) fn limit_options() -> impl Iterator<Item = Arg> {
    OPTIONS.into_iter().map(|(name, placeholder, help)| {
        let arg = args::value_arg(name, placeholder, help).help_heading("Limits");
        match placeholder {
            "TIME" => arg.value_parser(value_parser!(WrittenDuration)),
            "on|off" => arg.value_parser(value_parser!(WrittenSwitch)),
            _ => arg.value_parser(parse_count),
        }
    })
}

/// Resolves the limits.
pub(super) fn resolve_limits(
    file: &FileLimits,
    from: SettingSources<'_, '_>,
) -> Result<CallLimits> {
    let time = |option, variable, file: Option<WrittenDuration>| -> Result<Option<Duration>> {
        let given = from.option_or_variable::<WrittenDuration>(option, variable)?;
        Ok(given.or(file).map(|time| time.0))
    };
    let count = |option, variable, file| resolve_count(option, variable, file, from);
    Ok(CallLimits {
        call_timeout: time("call-timeout", "TOOL_SDK_CALL_TIMEOUT", file.call_timeout)?,
        approval_timeout: time(
            "approval-timeout",
            "TOOL_SDK_APPROVAL_TIMEOUT",
            file.approval_timeout,
        )?,
        budget: resolve_budget(file, from)?,
        outputs_max_age: time("outputs-max-age", "TOOL_SDK_OUTPUTS_MAX_AGE", file.outputs_max_age)?
            .unwrap_or(RETENTION),
        capture_bytes: count("capture-bytes", "TOOL_SDK_CAPTURE_BYTES", file.capture_bytes)?,
        loop_guard: resolve_loop_guard(&file.loop_guard, from)?,
    })
}

/// Resolves the settings of the loop guard. Values that it cannot count are reduced by it.
fn resolve_loop_guard(
    file: &FileLoopGuard,
    from: SettingSources<'_, '_>,
) -> Result<LoopGuardSettings> {
    let mut guard = LoopGuardSettings::default();
    let enabled = from.option_or_variable::<WrittenSwitch>("loop-guard", "TOOL_SDK_LOOP_GUARD")?;
    let enabled = enabled.map(|switch| switch == WrittenSwitch::On).or(file.enabled);
    guard.is_enabled = enabled.unwrap_or(guard.is_enabled);
    let count = |option, variable, file| resolve_count(option, variable, file, from);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    if let Some(times) = count("loop-threshold", "TOOL_SDK_LOOP_THRESHOLD", file.threshold)? {
        guard.threshold = number(times);
    }
    if let Some(times) = count("loop-hard-stop", "TOOL_SDK_LOOP_HARD_STOP", file.hard_stop)? {
        guard.hard_stop = number(times);
    }
    if let Some(calls) = count("loop-max-cycle", "TOOL_SDK_LOOP_MAX_CYCLE", file.max_cycle)? {
        guard.max_cycle = calls;
    }
    let window =
        from.option_or_variable::<WrittenDuration>("loop-window", "TOOL_SDK_LOOP_WINDOW")?;
    guard.window = window.or(file.window).map_or(guard.window, |window| window.0);
    let variable = "TOOL_SDK_LOOP_CALLS_PER_MINUTE";
    if let Some(calls) = count("loop-calls-per-minute", variable, file.calls_per_minute)? {
        guard.stateless_calls_per_minute = number(calls);
    }
    Ok(guard)
}

/// Resolves a whole number.
pub(super) fn resolve_count(
    option: &str,
    variable: &str,
    file: Option<NonZeroUsize>,
    from: SettingSources<'_, '_>,
) -> Result<Option<usize>> {
    let given = args::last_option::<NonZeroUsize>(from.levels, option);
    let variable = from.variable::<WrittenCount>(variable)?.map(|count| count.0);
    Ok(given.or(variable).or(file).map(NonZeroUsize::get))
}

/// Resolves the output budget. Bytes and tokens limit the same, so the source that has precedence
/// replaces both.
fn resolve_budget(file: &FileLimits, from: SettingSources<'_, '_>) -> Result<Budget> {
    const LINES: &str = "TOOL_SDK_MAX_OUTPUT_LINES";
    const BYTES: &str = "TOOL_SDK_MAX_OUTPUT_BYTES";
    const TOKENS: &str = "TOOL_SDK_MAX_OUTPUT_TOKENS";
    let option = |name| args::last_option::<NonZeroUsize>(from.levels, name);
    let variable =
        |name| Ok(from.variable::<WrittenCount>(name)?.map(|count| count.0)) as Result<_>;
    let smaller = |bytes: Option<NonZeroUsize>, tokens: Option<NonZeroUsize>| {
        let tokens = tokens.map(|tokens| Budget::tokens(tokens.get()).max_bytes());
        bytes.map(NonZeroUsize::get).into_iter().chain(tokens).min()
    };
    let of_options = smaller(option("output-bytes"), option("output-tokens"));
    let of_variables = smaller(variable(BYTES)?, variable(TOKENS)?);
    let of_file = smaller(file.output_bytes, file.output_tokens);
    let mut budget = Budget::default();
    if let Some(bytes) = of_options.or(of_variables).or(of_file) {
        budget = budget.with_bytes(bytes);
    }
    let lines = resolve_count("output-lines", LINES, file.output_lines, from)?;
    Ok(lines.map_or(budget, |lines| budget.with_lines(lines)))
}

/// `on` or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrittenSwitch {
    On,
    Off,
}

impl FromStr for WrittenSwitch {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        match text {
            "on" | "true" | "1" => Ok(Self::On),
            "off" | "false" | "0" => Ok(Self::Off),
            _ => Err(format!("it must be `on` or `off`, not `{}`", text.escape_debug())),
        }
    }
}

/// A whole number from 1 up, with an error message that says so.
struct WrittenCount(NonZeroUsize);

/// Parses the value of an option that is a number from 1 up.
pub(super) fn parse_count(text: &str) -> std::result::Result<NonZeroUsize, String> {
    text.parse::<WrittenCount>().map(|count| count.0)
}

impl FromStr for WrittenCount {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let wrong =
            |_| format!("it must be a whole number from 1 up, not `{}`", text.escape_debug());
        text.parse().map(Self).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let parse = |text: &str| text.parse::<WrittenDuration>().map(|time| time.0.as_millis());
        for (text, millis) in
            [("500ms", 500), ("30s", 30_000), ("90", 90_000), ("2m", 120_000), ("3d", 259_200_000)]
        {
            assert_eq!(parse(text), Ok(millis), "{text}");
        }
        for zero in ["0", "0d"] {
            assert_eq!(parse(zero).unwrap_err(), "it must be longer than 0");
        }
        for wrong in ["", "-1s", "1.5s", "2 m", "1w", "s", "99999999999999999999d"] {
            assert!(parse(wrong).unwrap_err().contains("is not a duration such as"), "{wrong}");
        }
    }

    #[test]
    fn a_count_is_a_whole_number_from_1_up() {
        assert_eq!(parse_count("7").map(NonZeroUsize::get), Ok(7));
        for wrong in ["0", "-1", "x"] {
            let problem = parse_count(wrong).unwrap_err();
            assert_eq!(problem, format!("it must be a whole number from 1 up, not `{wrong}`"));
        }
    }

    // F178, F192: every limit has an option, a variable and a key, in this order.
    #[test]
    fn every_limit_is_in_the_help_and_in_the_guide() {
        let guide = include_str!("../../../guide/command_line.md");
        for (name, _, help) in OPTIONS {
            assert!(guide.contains(&format!("`--{name} ")), "{name}");
            let key = name.replace('-', "_");
            let key = match key.strip_prefix("loop_") {
                Some("guard") => "loop_guard.enabled".to_owned(),
                Some(member) => format!("loop_guard.{member}"),
                None => key,
            };
            assert!(guide.contains(&format!("`{key}`")), "{key}");
            let variable = help.split_once("[env: ").unwrap().1.split_once(']').unwrap().0;
            assert!(guide.contains(variable), "{variable}");
            assert!(args::RESERVED.contains(&name), "{name}");
        }
    }
}
